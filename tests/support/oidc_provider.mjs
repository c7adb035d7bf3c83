// An issuer of tokens whose keys change when it is told to, by lines on its standard input; each is answered by a line.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

console.info = console.warn; // what the library has to say is no answer to a line
const [library, port, audience, redirect, cors] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(library));
const issuer = `http://127.0.0.1:${port}`;

let made = 0;
const newKey = (kind) => {
  const options = kind === "ES256" ? ["ec", { namedCurve: "P-256" }] : ["rsa", { modulusLength: 2048 }];
  const { privateKey } = generateKeyPairSync(...options);
  return { ...privateKey.export({ format: "jwk" }), kid: `key-${++made}`, use: "sig", alg: kind };
};

// The client that pages of the catalog are, in browsers.
const pagesOf = (uri) => ({
  client_id: "console",
  token_endpoint_auth_method: "none",
  grant_types: ["authorization_code", "refresh_token"],
  redirect_uris: [uri, `${uri}index.html`],
  post_logout_redirect_uris: [uri],
  response_types: ["code"],
  id_token_signed_response_alg: keys[0].alg,
});

let keys = [newKey("RS256")];
let handle;
const serve = () => {
  const provider = new Provider(issuer, {
    jwks: { keys },
    clients: [
      {
        client_id: "ada",
        client_secret: "a-secret-of-this-test",
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
        id_token_signed_response_alg: keys[0].alg,
      },
      {
        client_id: "arco", // of people, at a command line
        application_type: "native",
        token_endpoint_auth_method: "none",
        grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
        redirect_uris: ["http://127.0.0.1/callback"],
        response_types: ["code"],
        id_token_signed_response_alg: keys[0].alg,
      },
      ...(redirect ? [pagesOf(redirect)] : []),
    ],
    clientBasedCORS: (_, origin) => cors === "cors" && origin === new URL(redirect).origin,
    issueRefreshToken: (_, client) => client.grantTypeAllowed("refresh_token"),
    features: {
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true },
      revocation: { enabled: true },
      devInteractions: { enabled: true }, // pages on which anybody may log in
      resourceIndicators: {
        enabled: true,
        defaultResource: () => "urn:arco:catalog",
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          audience,
          scope: "",
          accessTokenFormat: "jwt",
          accessTokenTTL: 3600,
          jwt: { sign: { alg: keys[0].alg, kid: keys[0].kid } },
        }),
      },
    },
    extraTokenClaims: () => ({ roles: ["reader", "writer"] }),
  });
  handle = provider.callback();
};

const commands = {
  publish: (kind) => (keys = [...keys, newKey(kind)]), // others may know it before it signs
  sign: () => (keys = [keys.at(-1), ...keys.slice(0, -1)]),
  withdraw: () => (keys = keys.slice(0, 1)),
  replace: (kind) => (keys = [newKey(kind)]), // at once, as after a theft
};

serve();
createServer((request, response) => handle(request, response)).listen(Number(port), "127.0.0.1", () => {
  console.log("ready");
  createInterface({ input: process.stdin })
    .on("line", (line) => {
      const [command, kind] = line.split(" ");
      commands[command](kind);
      serve();
      console.log(keys[0].kid);
    })
    .on("close", () => process.exit(0));
});
