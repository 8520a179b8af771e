"""LaTeX that Jupyter may typeset: commands of a list, which draw and do nothing else (W8).

Others lead somewhere (`\\href`), load more (`\\require`), write HTML (`\\unicode`, `\\style`, `\\mmlToken`), change
what later formulas mean (`\\def`), or draw over the page (`\\rule`, `\\kern`).
"""

from __future__ import annotations

import re

_MOST_CHARS = 20_000
_DEEPEST = 50
_COMMAND = re.compile(r"\\([A-Za-z]++|.?)", re.DOTALL)
_PLACE = re.compile(r"\\(?:begin|end)\s*+(?:\{([a-z]++\*?+)\})?+")
_PLACES = frozenset(re.findall(r"\S+", """
    align aligned alignedat array bmatrix Bmatrix cases equation gather gathered matrix multline pmatrix smallmatrix
    split vmatrix Vmatrix align* equation* gather*
"""))
_COMMANDS = frozenset(re.findall(r"\S+", """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi omicron pi varpi rho
    varrho sigma varsigma tau upsilon phi varphi chi psi omega digamma Gamma Delta Theta Lambda Xi Pi Sigma Upsilon
    Phi Psi Omega arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup
    ln log max min Pr sec sin sinh sup tan tanh operatorname mod bmod pmod frac dfrac tfrac cfrac binom dbinom tbinom
    sqrt overline underline overbrace underbrace overset underset stackrel substack hat bar vec dot ddot dddot tilde
    check acute grave breve widehat widetilde overrightarrow overleftarrow boxed mathrm mathbf mathit mathsf mathtt
    mathcal mathbb mathfrak mathscr mathnormal mathop mathbin mathrel mathord boldsymbol bm text textrm textbf textit
    textsf texttt rm bf it displaystyle textstyle scriptstyle limits nolimits left right middle big Big bigg Bigg bigl
    bigr Bigl Bigr biggl biggr Biggl Biggr quad qquad pm mp times div cdot ast star circ bullet oplus ominus otimes
    oslash odot cap cup uplus sqcap sqcup vee wedge setminus wr diamond dagger ddagger land lor lnot neg le leq
    leqslant ge geq geqslant lt gt ne neq not equiv sim simeq approx cong propto prec preceq succ succeq ll gg subset
    supset subseteq supseteq subsetneq supsetneq in ni notin mid nmid parallel perp models vdash dashv asymp doteq
    colon leftarrow rightarrow to gets mapsto leftrightarrow Leftarrow Rightarrow Leftrightarrow longleftarrow
    longrightarrow longmapsto Longleftarrow Longrightarrow Longleftrightarrow uparrow downarrow updownarrow Uparrow
    Downarrow nearrow searrow swarrow nwarrow hookleftarrow hookrightarrow rightleftharpoons implies iff sum prod
    coprod int iint iiint oint bigcap bigcup bigvee bigwedge bigoplus bigotimes infty partial nabla forall exists
    nexists emptyset varnothing aleph hbar imath jmath ell Re Im wp angle prime surd top bot triangle square flat
    natural sharp dots ldots cdots vdots ddots therefore because langle rangle vert Vert lvert rvert lVert rVert
    lfloor rfloor lceil rceil lbrace rbrace lbrack rbrack backslash begin end hline
""")).union("()[]{}|,;:! _%$&#\\\n")


def is_harmless(latex: str) -> bool:
    """True if the text names commands of the list alone, and no character that means more to TeX or HTML."""
    if len(latex) > _MOST_CHARS or any(one in latex for one in ("<", ">", "`", "^^")):
        return False
    if re.search(r"\\\\\s*+\[|(?<!\\)[#%]", latex):  # rows apart by any length, parameters, comments
        return False
    depth = 0
    for one in latex:
        depth += (one == "{") - (one == "}")
        if depth > _DEEPEST:
            return False
    return _COMMANDS.issuperset(_COMMAND.findall(latex)) and _PLACES.issuperset(_PLACE.findall(latex))
