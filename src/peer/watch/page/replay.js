// The slider over the kept rounds. At its end the page follows the run.

export class Replay {
  /** `onShow` is called after another round, or the newest figures, are to be drawn. */
  constructor(state, view, onShow) {
    this.state = state;
    this.view = view;
    this.onShow = onShow;
    this.timer = null;
    this.busy = false;
    this.slider = document.getElementById("slider");
    this.output = document.getElementById("shown-round");
    this.playButton = document.getElementById("play");
    this.liveButton = document.getElementById("live");
    this.speed = document.getElementById("speed");
    this.slider.addEventListener("input", () => this.slide());
    this.playButton.addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    this.liveButton.addEventListener("click", () => this.follow());
    this.speed.addEventListener("change", () => this.timer && this.play());
  }

  /** Takes over which rounds are kept. */
  update() {
    const { kept } = this.state, last = Math.max(0, kept.length - 1);
    this.slider.max = last;
    this.slider.value = this.view.replay === null ? last : this.placeOf(this.view.replay);
    this.playButton.disabled = kept.length < 2;
    const { run, end } = this.state, done = end ? 1 : kept[last] / run.rounds;
    this.slider.style.width = `${100 * Math.min(1, done || 0)}%`;
    if (this.view.replay !== null) this.write();
  }

  /** The place of the last kept round that is not after `round`. */
  placeOf(round) {
    return Math.max(0, this.state.kept.findLastIndex((kept) => kept <= round));
  }

  slide() {
    this.pause();
    this.moveTo(Number(this.slider.value));
  }

  /** Shows a round, of which someone has clicked the place in a curve. */
  seek(round) {
    if (round === null) return;
    this.pause();
    this.moveTo(this.placeOf(round));
  }

  moveTo(place) {
    this.slider.value = place;
    if (place >= this.state.kept.length - 1) return this.follow();
    this.view.replay = this.state.kept[place];
    this.write();
    this.load();
  }

  /** Asks for one round at a time; of those that were wanted meanwhile, only for the newest. */
  async load() {
    if (this.busy) return;
    this.busy = true;
    for (let round; this.view.replay !== null && round !== this.view.replay;) {
      round = this.view.replay;
      const figures = await this.state.round(round).catch(() => null);
      if (this.view.replay === null) break;
      this.view.replayed = figures;
      this.onShow();
    }
    this.busy = false;
  }

  follow() {
    this.pause();
    this.view.replay = this.view.replayed = null;
    this.update();
    this.onShow();
  }

  play() {
    clearInterval(this.timer);
    if (this.view.replay === null) this.moveTo(0);
    this.timer = setInterval(() => {
      if (!this.busy) this.moveTo(Number(this.slider.value) + 1);
    }, 1000 / Number(this.speed.value));
    this.playButton.setAttribute("aria-pressed", "true");
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.playButton.setAttribute("aria-pressed", "false");
  }

  write() {
    const { replay } = this.view, { kept, end, maxRound } = this.state;
    const round = replay ?? (kept.length > 0 ? maxRound : undefined);
    const suffix = replay !== null ? "replay" : end ? "last" : "live";
    const text = round === undefined ? "no round yet" : `round ${round} · ${suffix}`;
    if (this.output.textContent === text) return;
    this.output.textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
    this.liveButton.textContent = end ? "Last" : "Live";
    this.liveButton.disabled = replay === null;
  }
}
