import { VERSION } from '../base/index.js'

/** The instrumentation scope of everything that Homeport exports. */
export const SCOPE = { name: 'homeport', version: VERSION }
