/** The program of a store thread: the transactions of all modules, and the thread that runs them. */
import './transactions.js'
import './store/sqlite/thread.js'
