# %%
import concurrent.futures, urllib.request
import xml.dom.minidom
import xml.etree.ElementTree as ET
import os.path as p
def host(address):
    return urllib.request.Request(address).host
# %% check
host('http://a.example/b') == 'a.example'
concurrent.futures.Future().done() is False
xml.dom.minidom.parseString('<a/>').documentElement.tagName == 'a'
ET.fromstring('<b/>').tag == 'b' and p.join('a', 'b') == 'a/b'
# %% then
import xml.sax
# %% check
xml.sax.handler is not None and xml.dom.minidom is not None
