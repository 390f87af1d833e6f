// The certified OpenID provider with accounts made up on the spot, for tests: `node provider.mjs PORT`.
// Whoever types a name signs in under it; names that begin with "unverified" have an address that nobody checked.
import { generateKeyPairSync } from "node:crypto";
import { Provider } from "oidc-provider";

const port = Number(process.argv[2]);
const issuer = `http://127.0.0.1:${port}`;
const HOME = "http://go.test"; // where the tests' Refract says it is
const API = `${HOME}/api`;

function key(kid, alg, kind, options) {
  const { privateKey } = generateKeyPairSync(kind, options);
  return { ...privateKey.export({ format: "jwk" }), kid, alg, use: "sig" };
}

const groups = new Map(); // of accounts: `PUT /groups/NAME` with a list of texts sets them

const person = (id) => ({
  sub: id,
  name: `${id[0].toUpperCase()}${id.slice(1)} of the Provider`,
  email: `${id}@example.com`,
  email_verified: !id.startsWith("unverified"),
  picture: `https://example.com/${id}.png`,
  groups: groups.get(id),
});

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "refract",
      client_secret: "the secret of the test client",
      redirect_uris: [`${HOME}/auth/oidc/work/callback`],
      post_logout_redirect_uris: [`${HOME}/auth/signed-out`],
    },
    {
      client_id: "script",
      token_endpoint_auth_method: "none",
      redirect_uris: [`${HOME}/script`],
      grant_types: ["authorization_code", "refresh_token"],
    },
  ],
  jwks: { keys: [key("rsa-1", "RS256", "rsa", { modulusLength: 2048 }), key("ec-1", "ES256", "ec", { namedCurve: "P-256" })] },
  cookies: { keys: ["made up for tests"] },
  claims: { email: ["email", "email_verified"], profile: ["name", "picture", "groups"] },
  scopes: ["openid", "offline_access", "profile", "email", "api"],
  pkce: { required: () => true },
  findAccount: (_context, id) => ({ accountId: id, claims: () => person(id) }),
  // Tests listen on this machine, where the provider's own guard would not let its logout tokens go.
  fetch: (url, { dispatcher, ...options }) => globalThis.fetch(url, options),
  clientDefaults: { id_token_signed_response_alg: "RS256" },
  features: {
    devInteractions: { enabled: true },
    backchannelLogout: { enabled: true },
    registration: { enabled: true }, // a test names its own port for logout tokens
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: () => ({ scope: "api", audience: API, accessTokenFormat: "jwt", jwt: { sign: { alg: "RS256" } } }),
    },
  },
  ttl: { AccessToken: 600, IdToken: 600, Interaction: 600, Session: 3600, Grant: 3600, RefreshToken: 3600 },
});

provider.use(async (context, next) => {
  const [, path, id] = context.path.split("/");
  if (path !== "groups" || context.method !== "PUT") return next();
  let body = "";
  for await (const chunk of context.req) body += chunk;
  groups.set(id, JSON.parse(body));
  context.status = 204;
});

provider.listen(port, "127.0.0.1");
