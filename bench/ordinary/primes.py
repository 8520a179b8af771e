"""Primes by sieve and by trial, greatest common divisors, Collatz, perfect numbers, at the top of a script."""

n = 60_000
sieve = [True] * (n + 1)
sieve[0] = sieve[1] = False
for i in range(2, int(n**0.5) + 1):
    if sieve[i]:
        for j in range(i * i, n + 1, i):
            sieve[j] = False
primes = [i for i, is_prime in enumerate(sieve) if is_prime]


def is_prime(number):
    if number < 2:
        return False
    i = 2
    while i * i <= number:
        if number % i == 0:
            return False
        i += 1
    return True


def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def collatz(number):
    steps = 0
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps


perfect = [k for k in range(2, 500) if sum(d for d in range(1, k) if k % d == 0) == k]
longest = max(range(1, 1500), key=collatz)
coprime = sum(gcd(a, b) == 1 for a in range(1, 100) for b in range(1, 100))
result = len(primes), primes[-1], sum(map(is_prime, range(3000))), longest, coprime, perfect
