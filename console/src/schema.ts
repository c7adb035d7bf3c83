/** The schema of a table or view as rows, one for each field, also for those inside of others. */

export type IcebergType =
  | string
  | { type: "struct"; fields: Field[] }
  | { type: "list"; "element-id": number; element: IcebergType; "element-required": boolean }
  | {
      type: "map";
      "key-id": number;
      key: IcebergType;
      "value-id": number;
      value: IcebergType;
      "value-required": boolean;
    };

export interface Field {
  id: number;
  name: string;
  type: IcebergType;
  required: boolean;
  doc?: string;
}

export interface Row {
  id: number;
  /** Names from the outermost field inwards. */
  path: string[];
  type: string;
  required: boolean;
  doc: string;
}

/** Returns a row for each of these fields, each followed by those inside of it. */
export function rowsOf(fields: readonly Field[], above: readonly string[] = []): Row[] {
  return fields.flatMap((field) => {
    const path = [...above, field.name];
    const row = { id: field.id, path, type: nameOf(field.type), required: field.required, doc: field.doc ?? "" };
    return [row, ...rowsOf(inside(field.type), path)];
  });
}

function inside(type: IcebergType): Field[] {
  if (typeof type === "string") return [];
  if (type.type === "struct") return type.fields;
  if (type.type === "list") {
    return [{ id: type["element-id"], name: "element", type: type.element, required: type["element-required"] }];
  }
  return [
    { id: type["key-id"], name: "key", type: type.key, required: true },
    { id: type["value-id"], name: "value", type: type.value, required: type["value-required"] },
  ];
}

function nameOf(type: IcebergType): string {
  return typeof type === "string" ? type : type.type;
}
