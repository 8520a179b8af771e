# %%
import json, xml.etree.ElementTree as ET, string, textwrap, argparse, configparser, csv, io, zlib, hashlib
tree = ET.fromstring('<a><b x="1">t</b></a>'); b = tree.find('b')
dec = json.JSONDecoder(); enc = json.JSONEncoder(indent=1)
ap = argparse.ArgumentParser(prog='p'); ap.add_argument('--n', type=int, default=2); ns = ap.parse_args([])
cp = configparser.ConfigParser(); cp.read_string('[s]\na = 1')
buf = io.StringIO(); 
wrap = textwrap.TextWrapper(width=5)
h = hashlib.sha256(b'a'); comp = zlib.compressobj()
# lost: h | a hash | digest()
# lost: comp | Compress | 
# %% check
tree[0] is b and b.get('x') == '1' and dec.decode('[1]') == [1] and enc.encode([1]) == '[\n 1\n]'
ap.parse_args(['--n', '5']).n == 5 and ns.n == 2 and cp['s']['a'] == '1' and wrap.wrap('aaa bbb') == ['aaa', 'bbb']
