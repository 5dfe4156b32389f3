import { Command } from 'commander'
import { readFileIfThere } from '../base/index.js'
import type { Config } from '../config/index.js'
import { authorityCertificatePath } from '../gateway/index.js'
import { failedWith } from './errors.js'
import { DONE, type ExitCode } from './exit-codes.js'
import { addConfigFlags, serverConfigOf } from './flags.js'
import type { Io } from './io.js'
import { addExamples } from './remote/remote.js'

/** `homeport ca`: the certificate that clients of databases with TLS must trust, as PEM. */
export function caCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('ca').description(
    'print the certificate of the local authority, which clients of databases with TLS must trust',
  )
  addExamples(command, [
    'homeport ca > homeport-ca.crt',
    'redis-cli --tls --cacert homeport-ca.crt -u "$REDIS_URL" ping',
  ])
  return addConfigFlags(command, ['dataDir']).action(async () => {
    io.out(await readAuthority(serverConfigOf(command)))
    end(DONE)
  })
}

async function readAuthority({ dataDir, tlsCertFile }: Config): Promise<string> {
  if (tlsCertFile !== undefined) {
    const problem = `This server uses the certificate in ${tlsCertFile} (tlsCertFile). Clients must trust the authority that signed it.`
    throw failedWith(problem)
  }
  const certificate = await readFileIfThere(authorityCertificatePath(dataDir))
  if (certificate !== undefined) return certificate
  const problem = `There is no certificate authority in ${dataDir}. Start the server once (npm start), or set its --data-dir.`
  throw failedWith(problem)
}
