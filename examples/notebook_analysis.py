"""An analysis in a Jupyter document, run behind the walls; the result is a document and a page with its outputs.

    python notebook_analysis.py

`cellblock notebook run sales.ipynb --save report.ipynb` does the same from a shell, without values. This program
also reads one: the total, as a number. Needs `pip install "cellblock[data]"`.
"""

import json
import sys
from pathlib import Path

from cellblock import Session

HERE = Path(__file__).parent


def main() -> None:
    document = json.loads((HERE / "sales.ipynb").read_text(encoding="utf-8"))
    with Session(preload=["pandas", "matplotlib"]) as session:
        session.files.write("sales.csv", (HERE / "sales.csv").read_bytes())
        for source in ("".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"):
            cell = session.run(source)
            if not cell.ok:
                sys.exit(cell.text)
            print(f"cell {cell.number}: {[output.type.value for output in cell.outputs]}")
        print("total:", session["total"])
        Path("report.ipynb").write_text(json.dumps(session.notebook.to_ipynb()), encoding="utf-8")
        Path("report.html").write_text(session.notebook.to_html(), encoding="utf-8")
        print("saved report.ipynb and report.html")


if __name__ == "__main__":
    main()
#> cell 1: ['dataframe']
#> cell 2: ['text']
#> cell 3: ['image']
#> total: 26
#> saved report.ipynb and report.html
