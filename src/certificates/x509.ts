/** The X.509 library, ready for use. Loaded on first use: it is large, and few processes and threads make certificates. */
import { webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'

x509.cryptoProvider.set(webcrypto as never)

export { x509 }
