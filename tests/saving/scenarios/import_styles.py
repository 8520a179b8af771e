# changes: Fake, magic | a mock makes a class for each object
# %%
import os, os.path, importlib, email.mime.text as mt, concurrent.futures as cf
from os import path as p2, getcwd
import unittest.mock as mock
join = os.path.join
def uses(): 
    import json
    return json.loads('[1]')
Fake = mock.Mock(return_value=3); Fake(1)
magic = mock.MagicMock()
# %% check
p2 is os.path and join('a', 'b') == 'a/b' and uses() == [1] and mt.MIMEText('x').get_payload() == 'x' and getcwd() == os.getcwd()
cf.Future is __import__('concurrent.futures').futures.Future
Fake(2) == 3 and Fake.call_count == 2
