import { pages } from "../names";
import { Empty, Heading } from "../parts/basics";

/** The page of an address that names none. */
export function NotFound() {
  return (
    <>
      <Heading title="There is no such page" />
      <Empty>
        The address names no page of this console. Begin at <a href={pages.home()}>all catalogs</a>.
      </Empty>
    </>
  );
}
