const kept: object[] = []

/**
 * Keeps an object, and all that it refers to, until its thread ends, so that no collection of garbage ever sees it.
 *
 * For what better-sqlite3 makes: from Node 24.19 on, whatever the garbage collector finds of its versions before 13
 * may end the whole process, and version 13 does not run on Node 20. So files are opened once or seldom, their settings
 * are made by `exec`, which leaves nothing behind, and every statement is prepared once.
 */
export function neverCollected<Kept extends object>(object: Kept): Kept {
  kept.push(object)
  return object
}
