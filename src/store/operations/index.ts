/** Every operation of the store, by room. Loading this page makes all of them known by name. */
export * as accounts from './accounts.js'
