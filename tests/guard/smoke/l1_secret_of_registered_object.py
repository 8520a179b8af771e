# L1 raises: SecurityError attribute
print(canary.public)
print(canary.secret)
