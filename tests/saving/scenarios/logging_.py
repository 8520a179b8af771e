# %%
import logging, io
log = logging.getLogger('mine.sub'); log.setLevel(logging.DEBUG)
out = io.StringIO()
handler = logging.StreamHandler(out); handler.setFormatter(logging.Formatter('%(levelname)s|%(message)s'))
log.addHandler(handler); log.propagate = False
class Only(logging.Filter):
    def filter(self, record): return 'no' not in record.getMessage()
log.addFilter(Only())
log.debug('one')
logging.getLogger().setLevel(logging.ERROR)
logging.addLevelName(25, 'NOTICE')
# %% then
log.info('two'); log.info('no')
# %% check
log is logging.getLogger('mine.sub')
out.getvalue() == 'DEBUG|one\nINFO|two\n'
log.handlers == [handler] and log.propagate is False
logging.getLogger().level == logging.ERROR and logging.getLevelName(25) == 'NOTICE'
