import { useState } from "preact/hooks";
import { signInByCredentials } from "../api";
import { nameIn } from "../identity";
import { signInAt, UNNAMED } from "../issuers";
import { Failure, Form, Heading } from "../parts/basics";
import { type Client, issuers, loginKinds, notice, serverConfig, signIn } from "../session";

/** The ways to sign in that this server has. The page that the address names is shown afterwards. */
export function SignInPage() {
  const logins = loginKinds();
  const several = (serverConfig.value?.realms ?? 0) > 1;
  return (
    <div class="sign-in">
      <Heading title="Sign in" />
      <Noticed />
      {issuers().map((client) => (
        <AtIssuer key={client.issuer} client={client} />
      ))}
      {logins.includes("client-credentials") && <ByCredentials several={several} />}
      {logins.includes("token") && (
        <details open={!logins.includes("client-credentials") && issuers().length === 0}>
          <summary>Sign in by a token</summary>
          <ByToken several={several} />
        </details>
      )}
      <p class="faint">
        Tokens stay in this tab and end with it. A secret is sent to this server alone, and is not kept.
      </p>
    </div>
  );
}

/** Why this tab has no login any more, or got none. */
export function Noticed() {
  const shown = notice.value;
  return (
    shown && (
      <div>
        <p class="notice" role="status">
          {shown.text}
        </p>
        <Failure error={shown.error} />
      </div>
    )
  );
}

function AtIssuer({ client }: { client: Client }) {
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const leave = async () => {
    setBusy(true);
    setError(null);
    try {
      await signInAt(client);
    } catch (failure) {
      setError(failure as Error);
    } finally {
      setBusy(false); // a browser may show this page again as it was, when the user goes back
    }
  };
  return (
    <div class="stack">
      <button type="button" onClick={leave} disabled={busy}>
        {busy ? "Going to" : "Sign in at"} <bdi>{client.issuer.replace(/^https?:\/\//, "")}</bdi>
      </button>
      {error && <Failure error={error} />}
    </div>
  );
}

function ByCredentials({ several }: { several: boolean }) {
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const send = async (data: FormData) => {
    setBusy(true);
    setError(null);
    try {
      await signInByCredentials(text(data, "id"), text(data, "secret"), text(data, "realm"));
    } catch (failure) {
      setError(failure as Error);
      setBusy(false);
    }
  };
  return (
    <Form class="stack" aria-label="Sign in by client id and secret" onSend={send}>
      <label>
        Client id
        <input name="id" required autoComplete="username" spellcheck={false} />
      </label>
      <label>
        Client secret
        <input name="secret" type="password" required autoComplete="current-password" />
      </label>
      {several && <RealmField />}
      {error && <Failure error={error} />}
      <button type="submit" disabled={busy}>
        {busy ? "Signing in" : "Sign in"}
      </button>
    </Form>
  );
}

function ByToken({ several }: { several: boolean }) {
  const send = (data: FormData) => {
    const token = text(data, "token");
    signIn({ token, name: nameIn(token) ?? UNNAMED, realm: text(data, "realm") });
  };
  return (
    <Form class="stack" aria-label="Sign in by a token" onSend={send}>
      <label>
        Access token
        <input name="token" type="password" required autoComplete="off" />
      </label>
      {several && <RealmField />}
      <button type="submit">Use this token</button>
    </Form>
  );
}

function RealmField() {
  return (
    <label>
      Realm, if it is not the usual one
      <input name="realm" spellcheck={false} />
    </label>
  );
}

function text(data: FormData, name: string): string {
  return String(data.get(name) ?? "").trim();
}
