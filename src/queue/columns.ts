/**
 * The JSON columns of messages. This program checked what is in them before it wrote them, so they are not checked
 * again: these functions are the only places that take them on trust.
 */
import type { HeaderMap, MessageConfig } from './types.js'

/** Reads a column of settings; NULL stands for none. */
export const storedConfig = (json: string | null | undefined): MessageConfig =>
  JSON.parse(json ?? '{}') as MessageConfig

/** Reads a column of headers; NULL stands for none. */
export const storedHeaders = (json: string | null | undefined): HeaderMap => JSON.parse(json ?? '{}') as HeaderMap
