// The widgets' glue where there is no page (Node's tests of their drawing): what view.js is to a
// browser.
export const widget = (spec) => ({ spec });
