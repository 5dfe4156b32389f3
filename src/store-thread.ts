/** The program of a store thread: registers the transactions of all modules, then runs them on request. */
import './transactions.js'
import './store/sqlite/thread.js'
