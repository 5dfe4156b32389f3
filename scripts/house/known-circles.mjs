/**
 * Circles that still exist. The list may only get shorter: a circle that is not within one of these groups is an error,
 * and so is a group that no longer contains a circle.
 */
export const KNOWN_CIRCLES = []
