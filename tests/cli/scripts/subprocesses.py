import subprocess
import sys

print(subprocess.check_output([sys.executable, "-c", "print(6 * 7)"], text=True).strip(), flush=True)
subprocess.run("echo from a shell", shell=True, check=True)
print(subprocess.run(["sh", "-c", "exit 3"]).returncode)
