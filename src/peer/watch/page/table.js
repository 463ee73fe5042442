// The peers as a table: all that the graph shows, for those who cannot see it or want to sort.

import { bytes, duration, percent, plain, whole } from "./scale.js";

const PAGE = 100;  // rows in the document: the layout of thousands would be felt

const COLUMNS = [
  { key: "id", name: "Peer" },
  { key: "state", name: "State" },
  { key: "round", name: "Round", format: whole },
  { key: "train_loss", name: "Training loss", format: plain },
  { key: "test_loss", name: "Test loss", format: plain },
  { key: "test_accuracy", name: "Test accuracy", format: percent },
  { key: "distance", name: "Distance from mean", format: plain },
  { key: "bytes_sent", name: "Sent", format: bytes },
  { key: "bytes_received", name: "Received", format: bytes },
  { key: "train_seconds", name: "Training", format: duration },
  { key: "wait_seconds", name: "Waiting", format: duration },
  { key: "mix_seconds", name: "Mixing", format: duration },
];

export class PeerTable {
  constructor(state, view, select) {
    this.state = state;
    this.view = view;
    this.select = select;
    this.details = document.getElementById("table");
    const table = document.getElementById("peer-table");
    this.head = table.tHead.rows[0];
    this.body = table.tBodies[0];
    this.sorted = { key: "id", descending: false };
    this.page = 0;
    for (const column of COLUMNS) this.head.append(this.heading(column));
    this.details.addEventListener("toggle", () => this.update());
    document.getElementById("page-back").addEventListener("click", () => this.turn(-1));
    document.getElementById("page-on").addEventListener("click", () => this.turn(1));
  }

  heading({ key, name }) {
    const cell = document.createElement("th"), button = document.createElement("button");
    cell.scope = "col";
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => {
      const again = this.sorted.key === key;
      this.sorted = { key, descending: again && !this.sorted.descending };
      this.page = 0;
      this.update();
    });
    cell.append(button);
    return cell;
  }

  turn(by) {
    this.page += by;
    this.update();
  }

  value(key, id) {
    if (key === "id") return id;
    if (key === "state") return this.view.replay === null ? this.state.states[id] : "";
    return this.view.figure(key, id);
  }

  order() {
    const { key, descending } = this.sorted, sign = descending ? -1 : 1;
    const ids = Array.from({ length: this.state.total }, (_, id) => id);
    const values = ids.map((id) => this.value(key, id));
    const unknown = (id) => Number.isNaN(values[id]);
    return ids.sort((a, b) => {
      if (unknown(a) || unknown(b)) return unknown(a) - unknown(b) || a - b;
      return sign * (values[a] < values[b] ? -1 : values[a] > values[b] ? 1 : 0) || a - b;
    });
  }

  update() {
    if (!this.details.open || !this.state.run) return;
    [...this.head.cells].forEach((cell, k) => {
      const { key, descending } = this.sorted;
      if (COLUMNS[k].key !== key) return cell.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
    });
    const pages = Math.ceil(this.state.total / PAGE);
    this.page = Math.max(0, Math.min(pages - 1, this.page));
    const shown = this.order().slice(this.page * PAGE, (this.page + 1) * PAGE);
    while (this.body.rows.length < shown.length) this.body.append(this.row());
    while (this.body.rows.length > shown.length) this.body.lastChild.remove();
    shown.forEach((id, k) => this.fill(this.body.rows[k], id));
    this.hideEmpty(shown);
    document.getElementById("pages").hidden = pages < 2;
    document.getElementById("page-back").disabled = this.page === 0;
    document.getElementById("page-on").disabled = this.page === pages - 1;
    const first = this.page * PAGE + 1, words = document.getElementById("page-words");
    words.textContent = `rows ${first} to ${first + shown.length - 1} of ${this.state.total}`;
  }

  row() {
    const row = document.createElement("tr");
    for (const { key } of COLUMNS) {
      const cell = document.createElement(key === "id" ? "th" : "td");
      row.append(cell);
      if (key !== "id") continue;
      cell.scope = "row";
      const button = document.createElement("button");
      button.type = "button";
      button.className = "name";
      button.addEventListener("click", () => this.select(Number(row.dataset.id)));
      cell.append(button);
    }
    return row;
  }

  fill(row, id) {
    row.dataset.id = id;
    row.classList.toggle("selected", id === this.view.selected);
    COLUMNS.forEach(({ key, format }, k) => {
      const cell = row.cells[k], value = this.value(key, id);
      const place = key === "id" ? cell.firstChild : cell;
      const isServer = key === "id" && id >= this.state.peers;
      const text = isServer ? `server ${id}` : format ? format(value) : String(value);
      if (place.textContent !== text) place.textContent = text;
      if (key === "state" && cell.className !== value) cell.className = value;
    });
  }

  /** Columns of which nothing is known in the rows shown take no room. */
  hideEmpty(ids) {
    COLUMNS.forEach(({ key, format }, k) => {
      const empty = format && ids.every((id) => !Number.isFinite(this.value(key, id)));
      for (const row of [this.head, ...this.body.rows]) row.cells[k].hidden = Boolean(empty);
    });
  }
}
