// Words, numbers and plurals in the language of the page. The English sentence is the message; base.html carries the
// translations that scripts need (#messages), extracted from calls of t and tn by `make messages`.

const block = document.getElementById("messages");
const { messages = {}, plurals = {} } = block ? JSON.parse(block.textContent) : {};

/** The language of the page, for Intl. */
export const locale = document.documentElement.lang || undefined;

/** The time zone that the user has chosen, for Intl; undefined is the browser's. */
export const timeZone = document.documentElement.dataset.zone;

const numbers = new Intl.NumberFormat(locale);
const rules = new Intl.PluralRules(locale);

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (placeholder, name) => values[name] ?? placeholder);

/** Return a number as the language writes it. */
export const formatNumber = (number) => numbers.format(number);

/** Return a message in the language of the page, with its `{placeholders}` filled in. */
export const t = (message, values = {}) => fill(messages[message] ?? message, values);

/** Return the form of a message that fits a number. `{n}` is that number, as the language writes it. */
export function tn(singular, plural, n, values = {}) {
  const category = rules.select(n);
  const form = messages[singular]?.[plurals[category] ?? plurals.other];
  return fill(form ?? (category === "one" ? singular : plural), { ...values, n: formatNumber(n) });
}
