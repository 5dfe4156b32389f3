/** Greatest priority of a message or run, and with a minus the least, seconds. */
export const GREATEST_PRIORITY = 600
