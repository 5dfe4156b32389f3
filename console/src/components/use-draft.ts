import { useState } from 'react'

/** The value of a field for a setting of the server. */
export interface Draft<Value> {
  /** The typed value, or else that of the server. */
  readonly value: Value
  readonly set: (value: Value) => void
  /** Discards the typed value, for example after it was saved. */
  readonly forget: () => void
}

/**
 * A field for a value of the server, which is refreshed repeatedly. Until the user types, the field follows the server:
 * saving an old value would undo changes of others.
 */
export function useDraft<Value>(present: Value): Draft<Value> {
  const [typed, setTyped] = useState<{ readonly value: Value } | undefined>()
  return {
    value: typed === undefined ? present : typed.value,
    set: (value) => setTyped({ value }),
    forget: () => setTyped(undefined),
  }
}
