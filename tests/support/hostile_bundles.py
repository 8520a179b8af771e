"""MIME bundles that would run a script, or make a browser connect, wherever a display takes them as they are.

`{url}` is an address that nothing may ask for, `{js}` a script that marks its page and asks for it.
"""

from __future__ import annotations

import base64
from typing import Any

HTML = (
    "<link rel=preconnect href='{url}'>",
    "<link rel='dns-prefetch preconnect' href='{url}'><link rel=prefetch href='{url}'>",
    "<link rel=stylesheet href='{url}'>",
    "<link rel=icon href='{url}'><link rel=manifest href='{url}'>",
    "<link rel=modulepreload href='{url}'><link rel=preload as=image href='{url}'>",
    "<LINK REL=PRECONNECT HREF='{url}'>",
    "<svg><link rel=preconnect href='{url}'></svg>",
    "<p title='<link rel=preconnect href={url}>'>",
    "<p title=\"a<b\"><link rel=preconnect href='{url}'>",
    "<!--><link rel=preconnect href='{url}'>-->",
    "<!-- --!><link rel=preconnect href='{url}'> -->",
    "<![CDATA[><link rel=preconnect href='{url}'>]]>",
    "<?x ><link rel=preconnect href='{url}'>?>",
    "<style><!--</style><link rel=preconnect href='{url}'>--></style>",
    "<noscript><p title=\"</noscript><link rel=preconnect href='{url}'>\"></noscript>",
    "<textarea><p title=\"</textarea><link rel=preconnect href='{url}'>\"></textarea>",
    "<xmp><p title='</xmp><link rel=preconnect href={url}>'></xmp>",
    "<svg><style><p title='</style><link rel=preconnect href={url}>'></style></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src={url}&gt;'>",
    "<scr\x00ipt>{js}</scr\x00ipt><l\x00ink rel=preconnect href='{url}'>",
    "<iframe src='{url}'></iframe>",
    "<iframe srcdoc=\"<img src='{url}'>\"></iframe>",
    "<iframe srcdoc='<script>{js}</script>'></iframe>",
    "<iframe src='javascript:{js}'></iframe>",
    "<frameset><frame src='{url}'></frameset>",
    "<object data='{url}'></object><embed src='{url}'>",
    "<applet archive='{url}'></applet><portal src='{url}'></portal><fencedframe src='{url}'></fencedframe>",
    "<meta http-equiv=refresh content='0;url={url}'>",
    "<meta http-equiv=link content='&lt;{url}&gt;; rel=preconnect'>",
    "<base href='{url}'><img src=x><a href=x ping='{url}'>x</a>",
    "<img src='{url}'><image src='{url}'><img srcset='{url} 1x'>",
    "<img src='data:image/svg+xml,<svg xmlns=\"http://www.w3.org/2000/svg\"><image href=\"{url}\"/></svg>'>",
    "<picture><source srcset='{url}'><img></picture>",
    "<video src='{url}' poster='{url}' autoplay></video><audio src='{url}' autoplay></audio><track src='{url}'>",
    "<table background='{url}'><tr><td background='{url}'>x</table><body background='{url}'>",
    "<style>body {{ background: url('{url}') }}</style>",
    "<style>@import '{url}';</style><style>@import url({url});</style>",
    "<style>@font-face {{ font-family: x; src: url({url}) }} p {{ font-family: x }}</style><p>x",
    "<style>p {{ content: '}} p {{ background: url({url}) }} q {{ ' }}</style><p>x",
    "<p style=\"background: url('{url}')\">x",
    "<p style=\"background: u\\72l('{url}')\">x",
    "<p style='background: u&#114;l({url})'>x",
    "<p style='background: image-set(\"{url}\" 1x)'>x",
    "<script>{js}</script><script src='{url}'></script>",
    "<script type=module>{js}</script><script type=importmap>{{\"imports\": {{\"x\": \"{url}\"}}}}</script>",
    "<img src=x onerror=\"{js}\"><p onclick=x>",
    "<svg onload=\"{js}\"><image href='{url}'/><use href='{url}#x'/></svg>",
    "<svg><script>{js}</script><animate onbegin=\"{js}\" attributeName=x dur=1s></svg>",
    "<svg><foreignObject><img src=x onerror=\"{js}\"></foreignObject></svg>",
    "<math><maction actiontype='statusline#{url}' xlink:href='javascript:{js}'><mi>x</mi></maction></math>",
    "<form action='{url}'><button autofocus onfocus=\"this.form.submit()\">x</button></form>",
    "<input type=image src='{url}'><input autofocus onfocus=\"{js}\">",
    "<template shadowrootmode=open><img src='{url}'></template>",
    "<a href=\"javascript:{js}\" id=x>x</a><details open ontoggle=\"{js}\">x</details>",
    "<p style='animation: x' onanimationend=\"{js}\"><style>@keyframes x {{}}</style><marquee onstart=\"{js}\">x",
    "</div></div></div></body></html><script>{js}</script>",
    "<table><div><table></table></div></div><img src='{url}'>",
    "x<!---><script>{js}</script>--><p>",
    "<html xmlns='http://www.w3.org/1999/xhtml'><body onload=\"{js}\" onpageshow=\"{js}\"><x:script>{js}</x:script>",
)  # fmt: skip
SVG = (
    "<svg xmlns='http://www.w3.org/2000/svg' onload=\"{js}\"/>",
    "<svg xmlns='http://www.w3.org/2000/svg'><script>{js}</script><script href='{url}'/></svg>",
    "<svg xmlns='http://www.w3.org/2000/svg' xmlns:x='http://www.w3.org/1999/xlink'><image x:href='{url}'/></svg>",
    "<svg xmlns='http://www.w3.org/2000/svg'><use href='{url}#a'/><feImage href='{url}'/></svg>",
    "<svg xmlns='http://www.w3.org/2000/svg'><style>@import '{url}'; svg {{ background: url({url}) }}</style></svg>",
    "<svg xmlns='http://www.w3.org/2000/svg'><foreignObject><body xmlns='http://www.w3.org/1999/xhtml'>"
    "<link rel='preconnect' href='{url}'/><img src='{url}'/><iframe src='{url}'/><script>{js}</script></body>"
    "</foreignObject></svg>",
    "<?xml-stylesheet href='{url}'?><svg xmlns='http://www.w3.org/2000/svg'><animate onbegin=\"{js}\" dur='1s'/></svg>",
    "<!DOCTYPE svg [<!ENTITY x SYSTEM '{url}'>]><svg xmlns='http://www.w3.org/2000/svg'><text>&x;</text></svg>",
    "<svg><set attributeName=onclick to=\"{js}\"/></svg><script>{js}</script><img src='{url}'>",
)  # fmt: skip
MARKDOWN = (
    "<script>{js}</script>",
    "<img src='{url}'>\n\n<iframe src='{url}'></iframe>",
    "![a]({url})",
    "![a][b]\n\n[b]: {url}",
    "[![a]({url})](javascript:{js})",
    "[a](javascript:{js}) <javascript:{js}>",
    "<div>\n\n**x** <svg onload=\"{js}\">\n\n</div>",
    "```html\n</code></pre><script>{js}</script>\n```",
    "`</code><script>{js}</script>`",
    "| a |\n|---|\n| <img src=x onerror=\"{js}\"> |",
    "$\\href{{javascript:{js}}}{{x}}$ $$\\unicode[<img src={url}>]{{x}}$$ $</span><script>{js}</script>$",
    "<link rel=preconnect href='{url}'>\n<style>@import '{url}';</style>",
    "# a {{onload={js}}}\n<!-- --><meta http-equiv=refresh content='0;url={url}'>",
    "![a](data:image/svg+xml;base64,PHN2Zz4=)&lt;script&gt;<script>{js}</script>",
)  # fmt: skip
LATEX = (
    "$\\href{{javascript:{js}}}{{x}}$",
    "$x$</div><script>{js}</script>",
    "$\\unicode[<img src={url}>]{{x}}$<img src='{url}'>",
    "\\require{{action}}$\\toggle{{a}}{{b}}\\endtoggle$<svg onload=\"{js}\">",
    "$\\includegraphics{{{url}}}$<img src='{url}'>",
    "$\\def\\alpha{{\\href{{{url}}}{{x}}}}\\alpha$<link rel=preconnect href='{url}'>",
)  # fmt: skip
_SCRIPT_TYPES = (
    "application/javascript", "text/javascript", "text/JavaScript", "text/jscript", "application/x-ecmascript",
    "text/vbscript", "module/javascript",
)  # fmt: skip
_MARKUP_TYPES = (
    "application/xhtml+xml", "text/xml", "application/xml", "image/svg", "text/vnd.mermaid", "text/x-html",
    "application/vnd.holoviews_load.v0+json", "application/vnd.bokehjs_load.v0+json",
)  # fmt: skip
_JSON: dict[str, Any] = {
    "application/vnd.plotly.v1+json": {"data": [{"type": "image", "source": "{url}"}], "layout": {"title": "<a {js}>"}},
    "application/vnd.vega.v5+json": {"data": [{"name": "a", "url": "{url}"}], "marks": [{"signal": "{js}"}]},
    "application/vnd.vegalite.v4+json": {"data": {"url": "{url}"}, "mark": "bar"},
    "application/vnd.jupyter.widget-view+json": {"version_major": 2, "model_id": "{js}"},
    "application/vnd.bokehjs_exec.v0+json": {"id": "{js}", "server_id": "{url}"},
    "application/geo+json": {"type": "Feature", "properties": {"tiles": "{url}"}},
    "application/vdom.v1+json": {"tagName": "img", "attributes": {"src": "{url}"}},
    "application/json": {"<script>{js}</script>": "<img src='{url}'>"},
    "application/vnd.cellblock.dataframe+json": {
        "columns": ["<script>{js}</script>"], "shape": ["<img src='{url}'>"], "head": [["<svg onload={js}>"]],
    },
}  # fmt: skip
_LIE = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>").decode()
BUNDLES: tuple[dict[str, Any], ...] = (
    *({"text/html": one} for one in HTML),
    *({"image/svg+xml": one} for one in SVG),
    *({"text/markdown": one} for one in MARKDOWN),
    *({"text/latex": one} for one in LATEX),
    *({one: "{js}"} for one in _SCRIPT_TYPES),
    *({one: "<script xmlns='http://www.w3.org/1999/xhtml'>{js}</script><img src='{url}'/>"} for one in _MARKUP_TYPES),
    *({one: body} for one, body in _JSON.items()),
    {"text/plain": "</pre><script>{js}</script><img src='{url}'>"},
    {"text/plain": "\x1b]8;;javascript:{js}\x07x\x1b]8;;\x07\x1b[1m</span><img src='{url}'>"},
    {"image/png": _LIE, "text/plain": "' onerror={js} \"><script>{js}</script>"},
    {"image/png": "' onerror=\"{js}\" x='"},
    {"image/svg+xml": SVG[0], "text/plain": "\"><img src='{url}'>"},
    {"text/html": "<b>x</b>", "image/svg+xml": SVG[1], "application/javascript": "{js}"},
    {"text/html": "", "text/markdown": MARKDOWN[0], "text/latex": LATEX[1]},
    {"text/html><script>{js}</script>": "x", "text/<img src='{url}'>": "x"},
)


def filled(bundle: Any, url: str) -> Any:
    """A bundle with an address of its own. Its script marks the page that it runs in, and asks for the address."""
    js = f"top.ran+=`{url} `;new Image().src=`{url}`"
    if isinstance(bundle, str):
        return bundle.replace("{{", "{").replace("}}", "}").replace("{url}", url).replace("{js}", js)
    if isinstance(bundle, dict):
        return {filled(key, url): filled(one, url) for key, one in bundle.items()}
    return [filled(one, url) for one in bundle] if isinstance(bundle, list) else bundle
