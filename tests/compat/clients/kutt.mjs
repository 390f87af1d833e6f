// The steps of the check of Kutt, by the package of npm.
import { args, finish, load, step } from "./steps.mjs";

const { Kutt } = (await load("kutt")).default ?? (await load("kutt"));
const [baseUrl, key] = args;
const connect = (apiKey) => {
  const kutt = new Kutt();
  kutt.set("api", `${baseUrl}/api/v2`).set("key", apiKey);
  return kutt;
};
const kutt = connect(key);
const links = kutt.links();

await step("health", () => kutt.health().check());
await step("user", () => kutt.users().info());
const made = await step("create", () =>
  links.create({
    target: "https://example.com/a",
    customurl: "Kutt-Name",
    description: "About",
    expire_in: "2 days",
  }),
);
await step("reuse", () =>
  links.create({ target: "https://example.com/a", customurl: "Kutt-Name", reuse: true }),
);
await step("list", () => links.list({ limit: 5, skip: 0, all: false }));
await step("update", () =>
  links.update(made.id, {
    target: "https://example.com/b",
    address: "Other-Name",
    description: "New",
  }),
);
await step("stats", () => links.stats(made.id));
await step("still", () => links.list());
await step("remove", () => links.remove(made.id));
await step("gone", () => links.list());
await step("badKey", () => connect("nonsense").links().list());
finish();
