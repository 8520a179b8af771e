# %%
import sys
version = sys.version_info; flags = sys.flags
figures = [sys.float_info, sys.hash_info, sys.int_info, sys.thread_info]
# %% check
version is sys.version_info and flags is sys.flags
figures[0] is sys.float_info and figures[3] is sys.thread_info
