/** Starts the console in the page. */
import { render } from "preact";
import { App } from "./app";
import { takeRedirect } from "./redirect";
import { followAddress } from "./router";
import "./style.css";

const root = document.getElementById("app");
if (root) {
  const redirect = takeRedirect();
  followAddress();
  render(<App redirect={redirect} />, root);
}
