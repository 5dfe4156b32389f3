/** The certificate of databases with TLS, as the configuration says. */
import { systemClock } from '../base/index.js'
import type { Config } from '../config/index.js'
import { type HomeportError, isError } from '../contract/errors/errors.js'
import { openServerCertificate } from '../gateway/index.js'
import type { Logger, Problems } from '../telemetry/index.js'

/** An unusable local certificate authority keeps only databases with TLS from being served. */
export async function openCertificate(config: Config, logger: Logger, problems: Problems) {
  const onProblem = (error: HomeportError): void => {
    const subject = isError(error, 'tls_authority_unusable') ? `tls/${error.details.file}` : 'tls'
    const advice = 'Databases with TLS cannot be served, now or once the certificate expires. All others can.'
    problems.report({ kind: 'tls_files', subject, severity: 'error', title: error.message, advice })
  }
  try {
    return await openServerCertificate({ ...certificateOptions(config, logger), onProblem })
  } catch (error) {
    if (!isError(error, 'tls_authority_unusable')) throw error
    onProblem(error)
    return undefined
  }
}

/** The certificate for databases with TLS: the operator's, or one of the local authority for all their names. */
function certificateOptions({ dataDir, publicRedisHost, redisDomain, ...files }: Config, logger: Logger) {
  const { tlsCertFile: certificate, tlsKeyFile: key } = files
  return {
    dataDir,
    hostNames: redisDomain === undefined ? [publicRedisHost] : [publicRedisHost, `*.${redisDomain}`],
    files: certificate === undefined || key === undefined ? undefined : { certificate, key },
    clock: systemClock,
    logger,
  }
}
