// The steps of the check of Karakeep, by the official SDK.
import { args, finish, load, step } from "./steps.mjs";

const { createKarakeepClient } = await load("@karakeep/sdk");
const [baseUrl, apiKey] = args;
const connect = (key) =>
  createKarakeepClient({
    baseUrl: `${baseUrl}/karakeep/api/v1`,
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` },
  });
const karakeep = connect(apiKey);

// What a call got: its status with the data, or with the error in the shape of the dialect.
function call(name, method, path, options = {}) {
  return step(name, async () => {
    const { data, error, response } = await karakeep[method](path, options);
    return { status: response.status, data: data ?? null, error: error ?? null };
  });
}

const at = (bookmarkId) => ({ params: { path: { bookmarkId } } });
const tag = (tagId) => ({ params: { path: { tagId } } });
const asked = (query) => ({ params: { query } });

await call("user", "GET", "/users/me");
const made = await call("create", "POST", "/bookmarks", {
  body: {
    type: "link",
    url: "https://example.com/a",
    title: "A title",
    note: "Mine",
    favourited: true,
    createdAt: "2020-01-02T03:04:05.678Z",
  },
});
const id = made.data.id;
await call("again", "POST", "/bookmarks", { body: { type: "link", url: "https://example.com/a#" } });
const text = await call("text", "POST", "/bookmarks", {
  body: { type: "text", text: "A thought\nof two lines" },
});
await call("bare", "POST", "/bookmarks", { body: { type: "link", url: "https://example.com/b" } });
await call("asset", "POST", "/bookmarks", {
  body: { type: "asset", assetType: "pdf", assetId: "x" },
});
await call("bad", "POST", "/bookmarks", { body: { type: "link", url: "no address" } });
const first = await call("first", "GET", "/bookmarks", asked({ limit: 2 }));
await call("second", "GET", "/bookmarks", asked({ limit: 2, cursor: first.data.nextCursor }));
await call("badCursor", "GET", "/bookmarks", asked({ cursor: "nonsense" }));
await call("oldest", "GET", "/bookmarks", asked({ limit: 1, sortOrder: "asc" }));
await call("favourites", "GET", "/bookmarks", asked({ favourited: true }));
await call("get", "GET", "/bookmarks/{bookmarkId}", at(id));
await call("update", "PATCH", "/bookmarks/{bookmarkId}", {
  ...at(id),
  body: { title: "Another", summary: "In short", archived: true, favourited: false },
});
await call("cleared", "PATCH", "/bookmarks/{bookmarkId}", { ...at(id), body: { title: null } });
await call("author", "PATCH", "/bookmarks/{bookmarkId}", { ...at(id), body: { author: "Ada" } });
await call("archived", "GET", "/bookmarks", asked({ archived: true }));
await call("search", "GET", "/bookmarks/search", asked({ q: "short -thought is:archived" }));
await call("missed", "GET", "/bookmarks/search", asked({ q: "short -is:archived" }));
await call("check", "GET", "/bookmarks/check-url", asked({ url: "https://EXAMPLE.com/a" }));
await call("unknown", "GET", "/bookmarks/check-url", asked({ url: "https://example.com/z" }));
const attached = await call("attach", "POST", "/bookmarks/{bookmarkId}/tags", {
  ...at(id),
  body: { tags: [{ tagName: "one" }, { tagName: "two" }] },
});
await call("tagged", "GET", "/bookmarks/search", asked({ q: "#one" }));
await call("detach", "DELETE", "/bookmarks/{bookmarkId}/tags", {
  ...at(id),
  body: { tags: [{ tagId: attached.data.attached[0] }, { tagName: "absent" }] },
});
const third = await call("createTag", "POST", "/tags", { body: { name: "three" } });
await call("tags", "GET", "/tags");
await call("tagPage", "GET", "/tags", asked({ limit: 2 }));
await call("tagsByUse", "GET", "/tags", asked({ limit: 1, sort: "usage", nameContains: "t" }));
await call("getTag", "GET", "/tags/{tagId}", tag(attached.data.attached[1]));
await call("rename", "PATCH", "/tags/{tagId}", { ...tag(third.data.id), body: { name: "Third" } });
await call("tagBookmarks", "GET", "/tags/{tagId}/bookmarks", tag(attached.data.attached[1]));
await call("deleteTag", "DELETE", "/tags/{tagId}", tag(third.data.id));
await call("deletedTag", "GET", "/tags/{tagId}", tag(third.data.id));
await call("lists", "GET", "/lists");
await call("createList", "POST", "/lists", { body: { name: "List", icon: "🚀" } });
await call("inList", "PUT", "/lists/{listId}/bookmarks/{bookmarkId}", {
  params: { path: { listId: "1", bookmarkId: id } },
});
await call("bookmarkLists", "GET", "/bookmarks/{bookmarkId}/lists", at(id));
await call("highlights", "GET", "/highlights");
await call("bookmarkHighlights", "GET", "/bookmarks/{bookmarkId}/highlights", at(id));
await call("backups", "GET", "/backups");
await call("feeds", "GET", "/feeds");
await call("stats", "GET", "/users/me/stats");
await call("absent", "GET", "/bookmarks/{bookmarkId}", at("ieidlxygmwj87oxz5hxttoc8"));
await call("delete", "DELETE", "/bookmarks/{bookmarkId}", at(text.data.id));
await call("deleted", "GET", "/bookmarks/{bookmarkId}", at(text.data.id));
await step("badKey", async () => {
  const { error, response } = await connect("nonsense").GET("/users/me");
  return { status: response.status, error };
});
finish();
