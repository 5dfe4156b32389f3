import type { Kind } from './kinds.js'

/** One option. Its flag and environment name follow from its key (see `names.ts`). */
export interface Option<Value> {
  readonly kind: Kind<Value>
  readonly default: NoInfer<Value>
  /** The default in the documentation, if not the value itself. */
  readonly defaultText?: string
  /** What the option does, one sentence. */
  readonly meaning: string
  /** How it relates to other options, or what it requires. */
  readonly relation?: string
}

/** Declares an option: the identity function, for type inference. */
export const option = <Value>(entry: Option<Value>): Option<Value> => entry
