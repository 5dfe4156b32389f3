/** Greatest priority of a message or run, seconds; the least one is its negative. */
export const GREATEST_PRIORITY = 600
