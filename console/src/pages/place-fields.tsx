/** The fields of a form that name something in a catalog: its type, its namespace, and its own name. */
export function PlaceFields<Type extends string>({
  label,
  types,
  type,
  setType,
  namespace,
}: {
  label: string;
  types: readonly Type[];
  type: Type;
  setType: (type: Type) => void;
  /** The namespace that the form begins with. */
  namespace?: string;
}) {
  return (
    <>
      <label>
        {label}
        <select name="type" onChange={(event) => setType(event.currentTarget.value as Type)}>
          {types.map((each) => (
            <option key={each} value={each} selected={each === type}>
              {each === "catalog" ? "the catalog" : each}
            </option>
          ))}
        </select>
      </label>
      {type !== "catalog" && (
        <label>
          Namespace, levels by dots
          <input name="namespace" required spellcheck={false} autocomplete="off" defaultValue={namespace} />
        </label>
      )}
      {(type === "table" || type === "view") && (
        <label>
          Name of the {type}
          <input name="name" required spellcheck={false} autocomplete="off" />
        </label>
      )}
    </>
  );
}

/** Returns the levels of the namespace that the fields name; none for the catalog itself. */
export function namespaceIn(data: FormData): string[] {
  const namespace = data.get("namespace");
  return namespace === null ? [] : String(namespace).split(".");
}
