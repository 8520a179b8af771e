import queue
import threading
from concurrent.futures import ThreadPoolExecutor

results: queue.Queue[int] = queue.Queue()
threads = [threading.Thread(target=results.put, args=(n,)) for n in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with ThreadPoolExecutor(8) as pool:
    print(sum(results.get() for _ in threads), sum(pool.map(lambda n: n * n, range(100))))
