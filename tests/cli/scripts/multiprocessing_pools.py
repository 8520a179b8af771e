import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory


def square(n):
    return n * n


def fill(name):
    block = shared_memory.SharedMemory(name)
    block.buf[0] = 7
    block.close()


if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(square, range(4)))
    with multiprocessing.Manager() as manager:
        shared = manager.dict()
        process = multiprocessing.Process(target=shared.__setitem__, args=("k", 1))
        process.start()
        process.join()
        print("manager", dict(shared))
    block = shared_memory.SharedMemory(create=True, size=64)
    process = multiprocessing.Process(target=fill, args=(block.name,))
    process.start()
    process.join()
    print("shared memory", block.buf[0])
    block.close()
    block.unlink()
    with ProcessPoolExecutor(2) as executor:
        print("executor", list(executor.map(abs, [-1, -2])))
