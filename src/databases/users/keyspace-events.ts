/** What each letter stands for belongs to the engine; here they only have an order. */
const CLASSES = 'g$lshzxetd'
const OTHERS = 'KEmn'

/**
 * The letters of `notify-keyspace-events` as CONFIG GET tells them, whatever order they came in (reference redis 3.6);
 * undefined when there is another letter among them.
 */
export function canonicalEvents(letters: string): string | undefined {
  const wanted = new Set([...new Set(letters)].flatMap((letter) => (letter === 'A' ? [...CLASSES] : [letter])))
  if ([...wanted].some((letter) => !CLASSES.includes(letter) && !OTHERS.includes(letter))) return undefined
  const classes = [...CLASSES].filter((letter) => wanted.has(letter)).join('')
  const others = [...OTHERS].filter((letter) => wanted.has(letter)).join('')
  return (classes === CLASSES ? 'A' : classes) + others
}
