import { useState } from "preact/hooks";
import { signInByCredentials } from "../api";
import { nameIn } from "../identity";
import { Failure, Form, Heading } from "../parts/basics";
import { expired, loginKinds, serverConfig, signIn } from "../session";

/** The ways to sign in that this server has. The page that the address names is shown afterwards. */
export function SignInPage() {
  const logins = loginKinds();
  const several = (serverConfig.value?.realms ?? 0) > 1;
  return (
    <div class="sign-in">
      <Heading title="Sign in" />
      {expired.value && (
        <p class="notice" role="status">
          Your sign-in has expired. Sign in again to go on where you were.
        </p>
      )}
      {logins.includes("client-credentials") && <ByCredentials several={several} />}
      {logins.includes("token") && (
        <details open={!logins.includes("client-credentials")}>
          <summary>Sign in by a token</summary>
          <ByToken several={several} />
        </details>
      )}
      <p class="faint">
        The token stays in this tab and ends with it. A secret is sent to this server alone, and is not kept.
      </p>
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
    signIn({ token, name: nameIn(token) ?? "Token", realm: text(data, "realm") });
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
