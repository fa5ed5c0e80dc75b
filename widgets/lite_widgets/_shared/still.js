// All widgets as pictures, for Python: `still(module, state)` gives the drawing as HTML.
import * as widgets from "all-widgets"; // by scripts/bundle.py: {name of the module: widget}

globalThis.still = (module, state) => widgets[module].still(JSON.parse(state));
