// Requests to our own server.

import { $ } from "./dom.js";

/** A response with an error status. */
export class HttpError extends Error {
  constructor(response, body) {
    super(`${response.status} ${response.url}`);
    this.name = "HttpError";
    this.status = response.status;
    this.body = body;
  }
}

/** Return the token that every request that changes something must carry. */
export const csrfToken = () => $("meta[name=csrf]").content;

export const parseHtml = (html) => new DOMParser().parseFromString(html, "text/html");

async function request(url, options) {
  const response = await fetch(url, options);
  if (!response.ok) throw new HttpError(response, await response.text());
  return response;
}

export const getText = async (url, options) => (await request(url, options)).text();

export const getJson = async (url, options) => (await request(url, options)).json();

/** Fetch a page and return it as a document. */
export const getDocument = async (url, options) =>
  parseHtml(await getText(url, { headers: { Accept: "text/html" }, ...options }));

/** Send a form as a browser would. */
export const postForm = (url, fields, { headers, ...options } = {}) =>
  request(url, {
    method: "POST",
    headers: { Accept: "text/html", "X-CSRF-Token": csrfToken(), ...headers },
    body: new URLSearchParams(fields),
    ...options,
  });

/** Open the sign-in page, which leads back here: the server remembers the page that it refuses. */
export async function signInAndReturn() {
  try {
    await fetch(location.href, { headers: { Accept: "text/html" } });
  } finally {
    location.assign("/auth/sign-in");
  }
}
