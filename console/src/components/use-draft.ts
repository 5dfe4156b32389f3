import { useState } from 'react'

/** A value of the server in a field. */
export interface Draft<Value> {
  /** The typed value, or else that of the server. */
  readonly value: Value
  readonly set: (value: Value) => void
  /** Discards the typed value, for example after it was saved. */
  readonly forget: () => void
}

/**
 * A typed value over one that the server keeps refreshing. Until the user types, the field follows the server: saving
 * an old value would undo changes of others.
 */
export function useDraft<Value>(present: Value): Draft<Value> {
  const [typed, setTyped] = useState<{ readonly value: Value } | undefined>()
  return {
    value: typed === undefined ? present : typed.value,
    set: (value) => setTyped({ value }),
    forget: () => setTyped(undefined),
  }
}
