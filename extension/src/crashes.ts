/** Counts how often the server has ended by itself: now and then is forgiven, again and again is not. */

const FORGIVEN = 4;
const WITHIN_MS = 3 * 60_000;

export class Crashes {
  readonly #times: number[] = [];

  /** Whether to start the server again after one more crash. */
  forgive(nowMs: number): boolean {
    this.#times.push(nowMs);
    return this.#times.filter((time) => nowMs - time <= WITHIN_MS).length <= FORGIVEN;
  }
}
