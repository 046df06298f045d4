// read returns a request as tests.yaml has it, with the URL that the client meant to call.
export async function read(incoming, body, base) {
  const url = new URL(`https:/${incoming.url}`);
  const out = { method: incoming.method, url: url.origin + url.pathname };
  if (url.search) out.query = fields(url.searchParams);
  out.headers = incoming.headers;
  const type = incoming.headers["content-type"] ?? "";
  const text = body.toString().replaceAll(base, "https://");
  if (type.startsWith("multipart/form-data")) out.multipart = multipart(type, body);
  else if (type.includes("json") && text !== "") out.json = JSON.parse(text);
  else if (type.startsWith("application/x-www-form-urlencoded")) out.form = fields(new URLSearchParams(text));
  else if (body.length > 10_000) out.size = body.length;
  else if (text !== "") out.text = text;
  return out;
}

// fields returns parameters; one that is repeated is a list.
function fields(params) {
  const out = {};
  for (const name of new Set(params.keys())) {
    const values = params.getAll(name);
    out[name] = values.length > 1 ? values : values[0];
  }
  return out;
}

// multipart returns the parts of a body: texts, and files as objects. One that is repeated is a list.
function multipart(type, body) {
  const [, boundary] = /boundary="?([^";]+)/.exec(type);
  const out = {};
  for (const part of body.toString().split(`--${boundary}`).slice(1, -1)) {
    const [, head, content] = /^\r\n(.*?)\r\n\r\n(.*)\r\n$/s.exec(part);
    const parameter = (name) => new RegExp(`[; ]${name}="?([^";\r\n]*)`, "i").exec(head)?.[1];
    const filename = parameter("filename");
    const contentType = /content-type: *([^\r\n]*)/i.exec(head)?.[1];
    const value = filename === undefined ? content : { filename, type: contentType, text: content };
    const name = parameter("name");
    out[name] = name in out ? [out[name], value].flat() : value;
  }
  return out;
}
