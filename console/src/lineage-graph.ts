/** The nodes and edges of a lineage graph, as the API sends them. */
import { dotted } from "./names";

export interface LineageNode {
  id: string;
  type: "table" | "view" | "dataset" | "hidden";
  namespace: string[] | null;
  name: string | null;
  dataset: { namespace: string; name: string } | null;
  depth: number;
}

export interface LineageEdge {
  from: string | null;
  to: string;
  confidence: "Verified" | "DeclaredUnverified";
  "run-id": string | null;
  job: { namespace: string; name: string } | null;
  principal: string | null;
  "at-ms": number | null;
  version: number | null;
  "version-id": string | null;
}

/** The name of a node, as it is shown. */
export function labelOf(node: LineageNode): string {
  if (node.type === "hidden") return "hidden";
  if (node.dataset) return node.dataset.name;
  return dotted(node.namespace ?? [], node.name);
}
