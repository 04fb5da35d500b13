/** What `rooflint.pages` writes into the page. Times are microseconds a step; null is not known. */

export type Known = "measured" | "ncu" | "estimated";

export interface Judged {
  readonly verdict: string | null;
  readonly reason: string | null;
  readonly advice: string | null;
  readonly verdict_known: Known | null;
  readonly free: boolean;
  readonly roof_ratio: number | null;
}

export interface Work {
  readonly pipe: string | null;
  readonly flop: number | null;
  readonly flop_known: Known;
  readonly dram_bytes: number | null;
  readonly dram_known: Known;
  readonly known: Known;
  readonly intensity: number | null;
  readonly flop_per_s: number | null;
  readonly bytes_per_s: number | null;
  readonly roof_ratio: number | null;
  /** The share of the time that these numbers are of. */
  readonly covered_ratio: number;
  readonly l2_bytes: number | null;
  readonly occupancy_ratio: number | null;
  readonly stall: string | null;
  readonly stall_ratio: number | null;
}

export interface Line extends Judged {
  readonly file: number;
  readonly line: number;
  /** As people count it: `56`, in a notebook `cell 4:3`. */
  readonly place: string;
  readonly function: string | null;
  readonly us: number;
  readonly forward_us: number;
  readonly backward_us: number;
  readonly recompute_us: number;
  readonly known: Known;
  readonly wait_us: number | null;
  readonly wait_count: number;
  readonly idle_us: number | null;
  readonly idle: Readonly<Record<string, number>>;
  readonly launch_count: number;
  readonly share: number | null;
  readonly work: Work | null;
  readonly why_no_work: string | null;
  readonly findings: readonly { readonly rule: string; readonly message: string }[];
}

export interface Kernel extends Judged {
  readonly name: number;
  readonly op: string | null;
  readonly line: number | null;
  readonly backward: boolean;
  readonly launch_count: number;
  readonly us: number;
  readonly each_us: number;
  readonly share: number | null;
  readonly grid: readonly number[] | null;
  readonly block: readonly number[] | null;
  readonly work: Work | null;
  readonly why_no_work: string | null;
}

export interface Peaks {
  readonly flop_per_s: readonly { readonly pipe: string; readonly tensor: boolean; readonly flop_per_s: number }[];
  readonly dram_bytes_per_s: number;
  readonly known: Known;
  readonly source: string;
}

export interface Step extends Judged {
  readonly sentence: string;
  readonly us: number | null;
  readonly recorded_us: number | null;
  readonly plain: boolean;
  readonly busy_us: number | null;
  readonly busy_ratio: number | null;
  readonly kernel_count: number | null;
  /** The mean one. */
  readonly kernel_us: number | null;
  readonly idle_us: Readonly<Record<string, number>>;
  readonly mfu: {
    readonly ratio: number;
    readonly precision: string;
    readonly peak_flop_per_s: number;
    readonly model_flop: number;
    readonly at_least: boolean;
  } | null;
}

/** Columns: activities in order of device (null: the host) and start. */
export interface Timeline {
  readonly length_us: number;
  readonly window_us: number;
  readonly first_step: number | null;
  readonly steps: readonly (readonly [number, number])[];
  readonly device: readonly (number | null)[];
  readonly what: readonly string[];
  readonly start_us: readonly number[];
  readonly us: readonly number[];
  readonly line: readonly (number | null)[];
  readonly name: readonly (number | null)[];
  /** How many were put together, being too short to be seen alone, and how much of the time they fill. */
  readonly count: readonly number[];
  readonly filled_us: readonly number[];
}

export interface Value {
  readonly format: number;
  readonly made_by: string;
  readonly title: string;
  readonly command: string;
  readonly device: string;
  readonly device_count: number;
  readonly on_gpu: boolean;
  readonly torch: string | null;
  readonly made_at: string | null;
  readonly step_count: number;
  readonly first_step: number | null;
  readonly steps_seen: number | null;
  readonly counters_ratio: number | null;
  readonly step: Step;
  readonly peaks: Peaks | null;
  readonly peaks_missing: string | null;
  readonly gains: readonly {
    readonly title: string;
    readonly us: number;
    readonly ratio: number | null;
    readonly line: number | null;
  }[];
  readonly notes: readonly string[];
  readonly lines: readonly Line[];
  readonly kernels: readonly Kernel[];
  readonly timeline: Timeline;
  readonly code: readonly Readonly<Record<string, string>>[];
  readonly trace: string | null;
  readonly names: readonly string[];
  readonly files: readonly string[];
}

export function fileName(value: Value, line: Line): string {
  return (value.files[line.file] ?? "").split(/[\\/]/).pop() ?? "";
}

/** `train.py:56` */
export function placeOf(value: Value, line: Line): string {
  return `${fileName(value, line)}:${line.place}`;
}

export function codeOf(value: Value, line: Line): string {
  return (value.code[line.file]?.[String(line.line)] ?? "").trim();
}
