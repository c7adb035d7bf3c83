/** How a page changes something: a button, where the user may; a dialog that says what will happen, sends it when it is
 * confirmed, and shows how it ended. */
import { effect, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Change } from "../api";
import { carryOut, newKey, type Outcome } from "../changes";
import { type Result, sentChanges } from "../load";
import { type Grant, type Right, useRight } from "../rights";
import { route } from "../router";
import { mustSignIn } from "../session";
import { Failure } from "./basics";

/** What a user wants to be done: `summary` is a sentence of what will happen, `done` one of what has happened. */
export interface Intent {
  title: string;
  summary: ComponentChildren;
  confirm: string;
  change: Change;
  /** Whether the API reads idempotency keys, so that the request may be sent again. */
  keyed: boolean;
  done: string;
  /** The privileges that it takes, where the page has not checked them, and in which catalog. */
  needs?: { catalog: string; checks: Grant[] };
  /** What the answer has that is shown once, such as a secret. */
  result?: (answer: unknown) => ComponentChildren;
  /** Called when it is done. */
  finish?: () => void;
}

/** What the open dialog is about. */
const shown = signal<Intent | null>(null);
/** What was done last, on this page. */
const done = signal("");

/** Opens the dialog that asks the user whether to do something. */
export function openDialog(intent: Intent): void {
  done.value = "";
  shown.value = intent;
}

/** Whether a change is being sent, whose outcome its dialog is to show. */
let sends = false;

let page = "";
effect(() => {
  const here = route.value.path.join("/");
  if (mustSignIn()) shown.value = null;
  if (here === page) return;
  page = here;
  done.value = "";
  if (!sends) shown.value = null;
});

/** A button that asks, for who may. For others it is disabled, and the reason is beside it. */
export function ChangeButton({
  label,
  about,
  right,
  intent,
}: {
  label: string;
  about: string;
  right: Result<Right>;
  intent: () => Intent;
}) {
  const refused = right.state === "loaded" && !right.value.allowed;
  return (
    <span class="change-button">
      <button
        type="button"
        class="quiet"
        aria-label={`${label}: ${about}`}
        aria-busy={right.state !== "loaded"}
        disabled={right.state !== "loaded" || refused}
        onClick={() => openDialog(intent())}
      >
        {label}
      </button>
      {refused && (
        <span class="faint">
          {" "}
          <bdi>{right.value.reason}</bdi>
        </span>
      )}
    </span>
  );
}

/** A form whose fields say what is to be done, and which asks before that. It is emptied once it is done. If `whole`, its
 * button is disabled until all that it requires is chosen or filled in. */
export function ChangeForm({
  label,
  whole = false,
  right,
  intent,
  children,
}: {
  label: string;
  whole?: boolean;
  right: Result<Right>;
  intent: (data: FormData) => Intent;
  children: ComponentChildren;
}) {
  const fields = useRef<HTMLFormElement>(null);
  const [complete, setComplete] = useState(false);
  const lookAtFields = () => setComplete(fields.current?.matches(":valid") ?? false);
  useEffect(lookAtFields); // also after a choice that brings other fields
  const refused = right.state === "loaded" && !right.value.allowed;
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const finish = () => {
      form.reset();
      lookAtFields();
    };
    openDialog({ ...intent(new FormData(form)), finish });
  };
  return (
    <form ref={fields} class="row" aria-label={label} onSubmit={send} onInput={lookAtFields}>
      {children}
      <button
        type="submit"
        aria-busy={right.state !== "loaded"}
        disabled={right.state !== "loaded" || refused || (whole && !complete)}
      >
        {label}
      </button>
      {refused && <bdi class="faint">{right.value.reason}</bdi>}
    </form>
  );
}

/** The one place of the console that asks before a change, and what was done last. */
export function Changes() {
  return (
    <>
      <p class="done" role="status">
        {done.value && <bdi>{done.value}</bdi>}
      </p>
      {shown.value && <Dialog key={shown.value} intent={shown.value} />}
    </>
  );
}

function Dialog({ intent }: { intent: Intent }) {
  const box = useRef<HTMLDialogElement>(null);
  const closing = useRef<HTMLButtonElement>(null);
  const key = useRef(newKey());
  const [sending, setSending] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const right = useRight(intent.needs?.catalog ?? "", intent.needs?.checks ?? []);
  const waits = sending || right.state !== "loaded" || !right.value.allowed;
  useEffect(() => {
    box.current?.showModal();
  }, []);
  useEffect(() => {
    if (outcome?.state === "done") closing.current?.focus(); // the button that had the focus is gone
  }, [outcome]);

  const send = async () => {
    if (sends || waits) return; // also a second click
    sends = true;
    setSending(true);
    if (outcome?.state === "refused") key.current = newKey(); // what was refused has its answer: this is a new intent
    setOutcome(null);
    const how = { repeats: intent.keyed, again: outcome?.state === "unknown" };
    const ended = await carryOut(intent.change, key.current, how);
    sends = false;
    sentChanges.value++;
    setSending(false);
    if (ended.state === "done") {
      done.value = intent.done;
      intent.finish?.();
    }
    if (ended.state === "done" && !intent.result) box.current?.close();
    else setOutcome(ended);
  };
  const result = outcome?.state === "done" ? intent.result?.(outcome.answer) : null;
  return (
    <dialog
      ref={box}
      aria-labelledby="change-title"
      aria-describedby="change-summary"
      onCancel={(event) => sends && event.preventDefault()}
      onClose={() => (sends ? box.current?.showModal() : close(intent))}
    >
      <h2 id="change-title">{intent.title}</h2>
      <p id="change-summary">{intent.summary}</p>
      {right.state === "loaded" && !right.value.allowed && (
        <p class="notice">
          <bdi>{right.value.reason}</bdi>
        </p>
      )}
      {outcome !== null && outcome.state !== "done" && <Failure error={outcome.error} />}
      {outcome?.state === "unknown" && <Unknown keyed={intent.keyed} />}
      {result}
      <p class="faint" role="status">
        {sending && "Sending…"}
      </p>
      <div class="buttons">
        <button
          ref={closing}
          type="button"
          class="more"
          aria-disabled={sending}
          onClick={() => sending || box.current?.close()}
        >
          {outcome === null ? "Cancel" : "Close"}
        </button>
        {result === null && (
          <button type="button" aria-disabled={waits} onClick={send}>
            {outcome?.state === "unknown" ? "Send again" : outcome ? "Try again" : intent.confirm}
          </button>
        )}
      </div>
    </dialog>
  );
}

function Unknown({ keyed }: { keyed: boolean }) {
  return (
    <p class="notice">
      No answer says whether this was done.{" "}
      {keyed
        ? "Send it again: it is the same request under the same key, which the catalog carries out once."
        : "Close this and look at the page, which was read again. This API reads no idempotency keys: sent again, the request may be carried out twice."}
    </p>
  );
}

/** Removes a dialog, and with it what an answer showed. */
function close(intent: Intent): void {
  if (shown.value === intent) shown.value = null;
  keepFocus();
}

/** How long after a change what had the focus may vanish from the page, in milliseconds. */
const REREAD_MS = 5000;

/** Moves the focus to the heading when the button that had it vanishes, since what it was for is done. */
function keepFocus(): void {
  const main = document.getElementById("main");
  if (main === null) return;
  const observer = new MutationObserver(() => {
    if (document.activeElement !== document.body) return;
    main.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
    observer.disconnect();
  });
  observer.observe(main, { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled"] });
  setTimeout(() => observer.disconnect(), REREAD_MS);
}
