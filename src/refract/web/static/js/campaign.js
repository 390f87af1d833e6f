// Campaign parameters in the query of a URL, as `refract.links.campaigns.parameters` reads and writes them: everything
// else stays as typed, placeholders and fragment included.

function split(url) {
  const [, rest, fragment] = /^([^#]*)(.*)$/s.exec(url);
  const mark = rest.indexOf("?");
  if (mark < 0) return [rest, [], fragment];
  const query = rest.slice(mark + 1);
  return [rest.slice(0, mark), query ? query.split("&") : [], fragment];
}

function decode(text) {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

const keyOf = (part) => decode(part.split("=", 1)[0]);

/** Return the campaign parameters of a URL by name. */
export function readCampaign(url) {
  const found = {};
  for (const part of split(url)[1]) {
    const key = keyOf(part);
    const value = part.slice(part.indexOf("=") + 1);
    if (key.startsWith("utm_") && part.includes("=") && !(key in found)) found[key] = decode(value);
  }
  return found;
}

/** Return a URL with one campaign parameter set, or removed if the value is blank. */
export function setCampaign(url, key, value) {
  const [before, parts, fragment] = split(url);
  const place = parts.findIndex((part) => keyOf(part) === key);
  const kept = parts.filter((part) => keyOf(part) !== key);
  const encoded = encodeURIComponent(value).replaceAll("%7B", "{").replaceAll("%7D", "}");
  if (value) kept.splice(place < 0 ? kept.length : place, 0, `${key}=${encoded}`);
  return before + (kept.length ? `?${kept.join("&")}` : "") + fragment;
}
