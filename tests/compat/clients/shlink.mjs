// The steps of compat.md's check of Shlink, by the official SDK, in two phases around clicks.
import { args, finish, loadFile, step } from "./steps.mjs";

const { ShlinkApiClient } = await loadFile("@shlinkio/shlink-js-sdk/dist/index.js");
const { FetchHttpClient } = await loadFile("@shlinkio/shlink-js-sdk/dist/fetch.js");
const [phase, baseUrl, apiKey, host] = args;
const client = (key) => new ShlinkApiClient(new FetchHttpClient(), { baseUrl, apiKey: key });
const shlink = client(apiKey);

async function build() {
  await step("health", () => shlink.health());
  await step("plain", () => shlink.createShortUrl({ longUrl: "https://example.com/plain" }));
  await step("custom", () =>
    shlink.createShortUrl({
      longUrl: "https://example.com/custom",
      customSlug: "Custom-Slug",
      tags: ["two", "one"],
      title: "A title",
      validUntil: "2030-01-02T03:04:05+02:00",
    }),
  );
  await step("again", () =>
    shlink.createShortUrl({
      longUrl: "https://example.com/custom",
      customSlug: "Custom-Slug",
      findIfExists: true,
    }),
  );
  await step("taken", () =>
    shlink.createShortUrl({ longUrl: "https://example.com/x", customSlug: "custom_slug" }),
  );
  await step("reserved", () =>
    shlink.createShortUrl({ longUrl: "https://example.com/x", customSlug: "api" }),
  );
  await step("bad", () => shlink.createShortUrl({ longUrl: "ftp://example.com" }));
  await step("limited", () =>
    shlink.createShortUrl({ longUrl: "https://example.com/x", maxVisits: 2000000000 }),
  );
  await step("list", () =>
    shlink.listShortUrls({ orderBy: { field: "dateCreated", dir: "ASC" } }),
  );
  await step("search", () =>
    shlink.listShortUrls({ searchTerm: "custom", tags: ["one", "two"], tagsMode: "all" }),
  );
  await step("second", () =>
    shlink.listShortUrls({
      page: "2",
      itemsPerPage: 1,
      orderBy: { field: "dateCreated", dir: "ASC" },
    }),
  );
  await step("get", () => shlink.getShortUrl({ shortCode: "Custom-Slug" }));
  await step("update", () =>
    shlink.updateShortUrl(
      { shortCode: "Custom-Slug" },
      { title: "Another", tags: ["one", "three"], validUntil: null, crawlable: true },
    ),
  );
  const slug = { shortCode: "Custom-Slug" };
  await step("later", () => shlink.updateShortUrl(slug, { maxVisits: 7, crawlable: false, validSince: "2040-01-01T00:00:00Z" }));
  await step("now", () => shlink.updateShortUrl(slug, { validSince: null }));
  await step("absent", () => shlink.getShortUrl({ shortCode: "absent" }));
  await step("elsewhere", () => shlink.getShortUrl({ shortCode: "Custom-Slug", domain: "x.test" }));
}

async function count() {
  const link = { shortCode: "Custom-Slug" };
  await step("visits", () => shlink.getShortUrlVisits(link));
  await step("people", () =>
    shlink.getShortUrlVisits(link, {
      excludeBots: true,
      startDate: "2026-05-31T00:00:00+00:00",
      endDate: "2026-06-02T00:00:00+00:00",
      page: 1,
      itemsPerPage: 1,
    }),
  );
  await step("overview", () => shlink.getVisitsOverview());
  await step("nonOrphan", () => shlink.getNonOrphanVisits());
  await step("orphan", () => shlink.getOrphanVisits());
  await step("tagVisits", () => shlink.getTagVisits("one"));
  await step("noTag", () => shlink.getTagVisits("nothing"));
  await step("tags", () => shlink.listTags());
  await step("stats", () => shlink.tagsStats());
  await step("rename", () => shlink.editTag({ oldName: "one", newName: "first" }));
  await step("deleteTags", () => shlink.deleteTags(["three", "unknown"]));
  await step("domains", () => shlink.listDomains());
  await step("defaultVisits", () => shlink.getDomainVisits("DEFAULT"));
  await step("hostVisits", () => shlink.getDomainVisits(host));
  await step("foreignVisits", () => shlink.getDomainVisits("x.test"));
  await step("redirects", () =>
    shlink.editDomainRedirects({ domain: host, baseUrlRedirect: "https://example.com" }),
  );
  await step("rules", () => shlink.getShortUrlRedirectRules(link));
  await step("noRules", () => shlink.setShortUrlRedirectRules(link, { redirectRules: [] }));
  await step("setRules", () =>
    shlink.setShortUrlRedirectRules(link, {
      redirectRules: [{ longUrl: "https://example.com/m", conditions: [] }],
    }),
  );
  await step("mercure", () => shlink.mercureInfo());
  await step("deleteVisits", () => shlink.deleteShortUrlVisits(link));
  await step("deleteOrphans", () => shlink.deleteOrphanVisits());
  await step("delete", () => shlink.deleteShortUrl(link));
  await step("deleted", () => shlink.getShortUrl(link));
  await step("remade", () =>
    shlink.createShortUrl({ longUrl: "https://example.com/new", customSlug: "custom-slug" }),
  );
  await step("badKey", () => client("nonsense").listTags());
}

await (phase === "build" ? build() : count());
finish();
