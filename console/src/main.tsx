/** Starts the console in the page. */
import { render } from "preact";
import { App } from "./app";
import { followAddress } from "./router";
import "./style.css";

const root = document.getElementById("app");
if (root) {
  followAddress();
  render(<App />, root);
}
