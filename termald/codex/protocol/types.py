"""Generated from Codex's own schema by `make protocol`; never edited. What is loosened, and why, stands in `tools/generate_protocol.py`."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, UnsetType, field

from termald.codex.message import Message


class Account(Message, frozen=True, kw_only=True):
    type: str
    email: str | None = None
    plan_type: str | None = field(name='planType', default=None)
    uses_codex_managed_credentials: bool | None = field(
        name='usesCodexManagedCredentials', default=None
    )


class AccountLoginCompletedNotification(Message, frozen=True, kw_only=True):
    error: str | None = None
    login_id: str | None = field(name='loginId', default=None)
    onboarding_entrypoint: str | None = field(
        name='onboardingEntrypoint', default=None
    )
    success: bool | None = None


class AccountUpdatedNotification(Message, frozen=True, kw_only=True):
    auth_mode: str | None = field(name='authMode', default=None)
    plan_type: str | None = field(name='planType', default=None)


class ActivePermissionProfile(Message, frozen=True, kw_only=True):
    id: str
    extends: str | None = None


class AdditionalContextEntry(Message, frozen=True, kw_only=True):
    kind: str
    value: str


class AdditionalNetworkPermissions(Message, frozen=True, kw_only=True):
    enabled: bool | None = None


class AgentMessageDeltaNotification(Message, frozen=True, kw_only=True):
    delta: str
    item_id: str = field(name='itemId')
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')


class AgentMessageInputContent(Message, frozen=True, kw_only=True):
    type: str
    text: str | UnsetType = UNSET
    encrypted_content: str | UnsetType = UNSET


class ApplyPatchApprovalResponse(Message, frozen=True, kw_only=True):
    decision: Any


class AsyncUserInputQuestion(Message, frozen=True, kw_only=True):
    options: list[str] | None = None
    title: str | None = None


class AttestationGenerateParams(Message, frozen=True, kw_only=True):
    pass


class AttestationGenerateResponse(Message, frozen=True, kw_only=True):
    token: str


class ByteRange(Message, frozen=True, kw_only=True):
    end: int | None = None
    start: int | None = None


class CapabilityRootLocation(Message, frozen=True, kw_only=True):
    """
    Location used to resolve a selected capability root.
    """

    type: str
    environment_id: str = field(name='environmentId')
    path: str


class ChatgptAuthTokensRefreshParams(Message, frozen=True, kw_only=True):
    previous_account_id: str | None = field(
        name='previousAccountId', default=None
    )
    reason: str | None = None


class ChatgptAuthTokensRefreshResponse(Message, frozen=True, kw_only=True):
    access_token: str = field(name='accessToken')
    chatgpt_account_id: str = field(name='chatgptAccountId')
    chatgpt_plan_type: str | None | UnsetType = field(
        name='chatgptPlanType', default=UNSET
    )


class ClientInfo(Message, frozen=True, kw_only=True):
    name: str
    version: str
    title: str | None | UnsetType = UNSET


class CollabAgentState(Message, frozen=True, kw_only=True):
    status: str
    message: str | None = None


class CommandAction(Message, frozen=True, kw_only=True):
    type: str
    command: str | None = None
    name: str | None = None
    path: str | None = None
    query: str | None = None


class CommandExecutionOutputDeltaNotification(Message, frozen=True, kw_only=True):
    delta: str
    item_id: str = field(name='itemId')
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')


class CommandExecutionRequestApprovalResponse(Message, frozen=True, kw_only=True):
    decision: Any


class ConfigurationReasoning(Message, frozen=True, kw_only=True):
    """
    Reasoning settings interpreted by the backend for the routed model.
    """

    effort: str


class ContentItem(Message, frozen=True, kw_only=True):
    type: str
    text: str | UnsetType = UNSET
    detail: str | None | UnsetType = UNSET
    image_url: str | UnsetType = UNSET
    file_id: str | UnsetType = UNSET
    audio_url: str | UnsetType = UNSET
    annotations: list[Any] | None | UnsetType = UNSET
    logprobs: list[Any] | None | UnsetType = UNSET


class ContextCompactedNotification(Message, frozen=True, kw_only=True):
    """
    Deprecated: Use `ContextCompaction` item type instead.
    """

    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')


class CreditsSnapshot(Message, frozen=True, kw_only=True):
    balance: str | None = None
    has_credits: bool | None = field(name='hasCredits', default=None)
    unlimited: bool | None = None


class CurrentTimeReadParams(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')


class CurrentTimeReadResponse(Message, frozen=True, kw_only=True):
    current_time_at: int = field(name='currentTimeAt')


class DeprecationNoticeNotification(Message, frozen=True, kw_only=True):
    details: str | None = None
    summary: str | None = None


class DynamicToolCallOutputContentItem(Message, frozen=True, kw_only=True):
    type: str
    text: str | None = None
    image_url: str | None = field(name='imageUrl', default=None)
    audio_url: str | None = field(name='audioUrl', default=None)


class DynamicToolCallParams(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    arguments: Any = None
    call_id: str | None = field(name='callId', default=None)
    namespace: str | None = None
    tool: str | None = None


class DynamicToolCallResponse(Message, frozen=True, kw_only=True):
    content_items: list[DynamicToolCallOutputContentItem] = field(name='contentItems')
    success: bool


class DynamicToolNamespaceTool(Message, frozen=True, kw_only=True):
    type: str
    description: str
    input_schema: Any = field(name='inputSchema')
    name: str
    defer_loading: bool | UnsetType = field(name='deferLoading', default=UNSET)


class DynamicToolSpec(Message, frozen=True, kw_only=True):
    type: str
    description: str
    name: str
    defer_loading: bool | UnsetType = field(name='deferLoading', default=UNSET)
    input_schema: Any | UnsetType = field(name='inputSchema', default=UNSET)
    tools: list[DynamicToolNamespaceTool] | UnsetType = UNSET


class EnvironmentConnectionNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    environment_id: str | None = field(name='environmentId', default=None)


class ExecCommandApprovalResponse(Message, frozen=True, kw_only=True):
    decision: Any


class FileChange(Message, frozen=True, kw_only=True):
    type: str
    content: str | None = None
    move_path: str | None = None
    unified_diff: str | None = None


class FileChangeOutputDeltaNotification(Message, frozen=True, kw_only=True):
    """
    Deprecated legacy notification for `apply_patch` textual output.
    """

    delta: str
    item_id: str = field(name='itemId')
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')


class FileChangeRequestApprovalParams(Message, frozen=True, kw_only=True):
    item_id: str = field(name='itemId')
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    grant_root: str | None = field(name='grantRoot', default=None)
    reason: str | None = None
    started_at_ms: int | None = field(name='startedAtMs', default=None)


class FileChangeRequestApprovalResponse(Message, frozen=True, kw_only=True):
    decision: str


class FileSystemSpecialPath(Message, frozen=True, kw_only=True):
    kind: str | None = None
    subpath: str | None = None
    path: str | None = None


class GatewayOAuthChangedNotification(Message, frozen=True, kw_only=True):
    status: str
    auth_url: str | None = field(name='authUrl', default=None)
    error: str | None = None
    provider_id: str | None = field(name='providerId', default=None)


class GetAccountParams(Message, frozen=True, kw_only=True):
    refresh_token: bool | UnsetType = field(name='refreshToken', default=UNSET)


class GetAccountRateLimitsParams(Message, frozen=True, kw_only=True):
    """
    Usage-read capabilities of the requesting client, never inferred from its experiment arm.
    """

    exclude_reset_credit_details: bool | UnsetType = field(
        name='excludeResetCreditDetails', default=UNSET
    )
    supports_luna_reserve: bool | UnsetType = field(
        name='supportsLunaReserve', default=UNSET
    )


class GitInfo(Message, frozen=True, kw_only=True):
    branch: str | None = None
    origin_url: str | None = field(name='originUrl', default=None)
    sha: str | None = None


class GuardianApprovalReview(Message, frozen=True, kw_only=True):
    """
    [UNSTABLE] Temporary approval auto-review payload used by `item/autoApprovalReview/*` notifications.
    """

    status: str
    rationale: str | None = None
    risk_level: str | None = field(name='riskLevel', default=None)
    user_authorization: str | None = field(
        name='userAuthorization', default=None
    )


class GuardianWarningNotification(Message, frozen=True, kw_only=True):
    message: str
    thread_id: str = field(name='threadId')


class HookPromptFragment(Message, frozen=True, kw_only=True):
    hook_run_id: str | None = field(name='hookRunId', default=None)
    text: str | None = None


class ImageGenerationFailure(Message, frozen=True, kw_only=True):
    type: str
    limit_id: str | None = field(name='limitId', default=None)
    resets_at: int | None = field(name='resetsAt', default=None)


class InitializeCapabilities(Message, frozen=True, kw_only=True):
    """
    Client-declared capabilities negotiated during initialize.
    """

    experimental_api: bool | UnsetType = field(name='experimentalApi', default=UNSET)
    explicit_gateway_oauth: bool | UnsetType = field(
        name='explicitGatewayOauth', default=UNSET
    )
    extensions: dict[str, Any] | None | UnsetType = UNSET
    mcp_server_openai_form_elicitation: bool | UnsetType = field(
        name='mcpServerOpenaiFormElicitation', default=UNSET
    )
    opt_out_notification_methods: list[str] | None | UnsetType = field(
        name='optOutNotificationMethods', default=UNSET
    )
    request_attestation: bool | UnsetType = field(
        name='requestAttestation', default=UNSET
    )


class InitializeParams(Message, frozen=True, kw_only=True):
    client_info: ClientInfo = field(name='clientInfo')
    capabilities: InitializeCapabilities | None | UnsetType = UNSET


class InitializeResponse(Message, frozen=True, kw_only=True):
    codex_home: str | None = field(name='codexHome', default=None)
    platform_family: str | None = field(
        name='platformFamily', default=None
    )
    platform_os: str | None = field(name='platformOs', default=None)
    user_agent: str | None = field(name='userAgent', default=None)


class InternalChatMessageMetadataPassthrough(Message, frozen=True, kw_only=True):
    """
    Internal Responses API passthrough metadata copied into underlying chat messages.
    """

    turn_id: str | None | UnsetType = UNSET


class ItemCompletedNotification(Message, frozen=True, kw_only=True):
    item: Raw
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    completed_at_ms: int | None = field(name='completedAtMs', default=None)


class ItemStartedNotification(Message, frozen=True, kw_only=True):
    item: Raw
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    started_at_ms: int | None = field(name='startedAtMs', default=None)


class LocalShellAction(Message, frozen=True, kw_only=True):
    type: str
    command: list[str]
    env: dict[str, str] | None | UnsetType = UNSET
    timeout_ms: int | None | UnsetType = UNSET
    user: str | None | UnsetType = UNSET
    working_directory: str | None | UnsetType = UNSET


class McpAppUi(Message, frozen=True, kw_only=True):
    """
    UI resource and display preference for model invocations, captured from the tool descriptor.
    """

    preferred_model_display_mode: str | None = field(
        name='preferredModelDisplayMode', default=None
    )
    resource_uri: str | None = field(name='resourceUri', default=None)


class McpElicitationSchema(Message, frozen=True, kw_only=True):
    """
    Typed form schema for MCP `elicitation/create` requests.
    """

    type: str
    field_schema: str | None = field(name='$schema', default=None)
    properties: dict[str, Any] | None = None
    required: list[str] | None = None


class McpServerElicitationRequestParams(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    mode: str | None = None
    server_name: str | None = field(name='serverName', default=None)
    turn_id: str | None = field(name='turnId', default=None)
    field_meta: Any = field(name='_meta', default=None)
    challenge: str | None = None
    description: str | None = None
    title: str | None = None
    message: str | None = None
    requested_schema: Any = field(name='requestedSchema', default=None)
    elicitation_id: str | None = field(name='elicitationId', default=None)
    url: str | None = None


class McpServerElicitationRequestResponse(Message, frozen=True, kw_only=True):
    action: str
    field_meta: Any | UnsetType = field(name='_meta', default=UNSET)
    content: Any | UnsetType = UNSET


class McpToolCallAppContext(Message, frozen=True, kw_only=True):
    action_name: str | None = field(name='actionName', default=None)
    app_name: str | None = field(name='appName', default=None)
    connector_id: str | None = field(name='connectorId', default=None)
    link_id: str | None = field(name='linkId', default=None)
    resource_uri: str | None = field(name='resourceUri', default=None)


class McpToolCallError(Message, frozen=True, kw_only=True):
    message: str


class McpToolCallProgressNotification(Message, frozen=True, kw_only=True):
    item_id: str = field(name='itemId')
    message: str
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')


class McpToolCallResult(Message, frozen=True, kw_only=True):
    field_meta: Any = field(name='_meta', default=None)
    content: list[Any] | None = None
    structured_content: Any = field(name='structuredContent', default=None)


class MemoryCitationEntry(Message, frozen=True, kw_only=True):
    line_end: int | None = field(name='lineEnd', default=None)
    line_start: int | None = field(name='lineStart', default=None)
    note: str | None = None
    path: str | None = None


class MisalignmentSteer(Message, frozen=True, kw_only=True):
    message: str


class ModelAccessPrograms(Message, frozen=True, kw_only=True):
    """
    Caller-specific explicit access programs advertised by model discovery.
    """

    cyber: list[str] | None = None


class ModelAvailabilityNux(Message, frozen=True, kw_only=True):
    message: str


class ModelListParams(Message, frozen=True, kw_only=True):
    cursor: str | None | UnsetType = UNSET
    include_hidden: bool | None | UnsetType = field(name='includeHidden', default=UNSET)
    limit: int | None | UnsetType = UNSET


class ModelReroutedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    from_model: str | None = field(name='fromModel', default=None)
    reason: str | None = None
    to_model: str | None = field(name='toModel', default=None)


class ModelSafetyBufferingUpdatedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    faster_model: str | None = field(name='fasterModel', default=None)
    model: str | None = None
    reasons: list[str] | None = None
    show_buffering_ui: bool | None = field(
        name='showBufferingUi', default=None
    )
    use_cases: list[str] | None = field(name='useCases', default=None)


class ModelServiceTier(Message, frozen=True, kw_only=True):
    id: str
    description: str | None = None
    name: str | None = None


class ModelUpgradeInfo(Message, frozen=True, kw_only=True):
    migration_markdown: str | None = field(
        name='migrationMarkdown', default=None
    )
    model: str | None = None
    model_link: str | None = field(name='modelLink', default=None)
    retirement_at: int | None = field(name='retirementAt', default=None)
    upgrade_copy: str | None = field(name='upgradeCopy', default=None)


class ModelVerificationNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    verifications: list[str] | None = None


class NetworkApprovalContext(Message, frozen=True, kw_only=True):
    host: str | None = None
    protocol: str | None = None


class NetworkPolicyAmendment(Message, frozen=True, kw_only=True):
    action: str | None = None
    host: str | None = None


class ParsedCommand(Message, frozen=True, kw_only=True):
    type: str
    cmd: str | None = None
    name: str | None = None
    path: str | None = None
    query: str | None = None


class PatchChangeKind(Message, frozen=True, kw_only=True):
    type: str
    move_path: str | None = None


class PlanDeltaNotification(Message, frozen=True, kw_only=True):
    """
    EXPERIMENTAL - proposed plan streaming deltas for plan items.
    """

    delta: str
    item_id: str = field(name='itemId')
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')


class RateLimitResetCredit(Message, frozen=True, kw_only=True):
    id: str
    status: str
    description: str | None = None
    expires_at: int | None = field(name='expiresAt', default=None)
    granted_at: int | None = field(name='grantedAt', default=None)
    reset_type: str | None = field(name='resetType', default=None)
    title: str | None = None


class RateLimitResetCreditsSummary(Message, frozen=True, kw_only=True):
    available_count: int | None = field(
        name='availableCount', default=None
    )
    credits: list[RateLimitResetCredit] | None = None


class RateLimitWindow(Message, frozen=True, kw_only=True):
    resets_at: int | None = field(name='resetsAt', default=None)
    used_percent: int | None = field(name='usedPercent', default=None)
    window_duration_mins: int | None = field(
        name='windowDurationMins', default=None
    )


class ReasoningEffortOption(Message, frozen=True, kw_only=True):
    description: str | None = None
    reasoning_effort: str | None = field(
        name='reasoningEffort', default=None
    )


class ReasoningItemContent(Message, frozen=True, kw_only=True):
    type: str
    text: str


class ReasoningItemReasoningSummary(Message, frozen=True, kw_only=True):
    type: str
    text: str


class ReasoningSummaryPartAddedNotification(Message, frozen=True, kw_only=True):
    item_id: str = field(name='itemId')
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    summary_index: int | None = field(name='summaryIndex', default=None)


class ReasoningSummaryTextDeltaNotification(Message, frozen=True, kw_only=True):
    delta: str
    item_id: str = field(name='itemId')
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    summary_index: int | None = field(name='summaryIndex', default=None)


class ReasoningTextDeltaNotification(Message, frozen=True, kw_only=True):
    delta: str
    item_id: str = field(name='itemId')
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    content_index: int | None = field(name='contentIndex', default=None)


class ResponseItem(Message, frozen=True, kw_only=True):
    type: str
    id: str | None | UnsetType = UNSET
    role: str | UnsetType = UNSET
    tools: list[Any] | UnsetType = UNSET
    content: Any | UnsetType = UNSET
    encrypted_content: str | None | UnsetType = UNSET
    internal_chat_message_metadata_passthrough: (
        InternalChatMessageMetadataPassthrough | None | UnsetType
    ) = UNSET
    phase: str | None | UnsetType = UNSET
    status: str | None | UnsetType = UNSET
    author: str | UnsetType = UNSET
    recipient: str | UnsetType = UNSET
    summary: list[ReasoningItemReasoningSummary] | UnsetType = UNSET
    action: Any | UnsetType = UNSET
    call_id: str | None | UnsetType = UNSET
    arguments: Any | UnsetType = UNSET
    encrypted_function_args: list[str] | None | UnsetType = UNSET
    name: str | UnsetType = UNSET
    namespace: str | None | UnsetType = UNSET
    execution: str | UnsetType = UNSET
    output: Any | UnsetType = UNSET
    input: str | UnsetType = UNSET
    result: str | UnsetType = UNSET
    revised_prompt: str | None | UnsetType = UNSET
    reasoning: ConfigurationReasoning | UnsetType = UNSET


class ResponsesApiWebSearchAction(Message, frozen=True, kw_only=True):
    type: str
    queries: list[str] | None | UnsetType = UNSET
    query: str | None | UnsetType = UNSET
    url: str | None | UnsetType = UNSET
    pattern: str | None | UnsetType = UNSET


class ReviewTarget(Message, frozen=True, kw_only=True):
    type: str
    branch: str | UnsetType = UNSET
    sha: str | UnsetType = UNSET
    title: str | None | UnsetType = UNSET
    instructions: str | UnsetType = UNSET


class SandboxPolicy(Message, frozen=True, kw_only=True):
    type: str
    network_access: Any = field(name='networkAccess', default=None)
    exclude_slash_tmp: bool | None = field(
        name='excludeSlashTmp', default=None
    )
    exclude_tmpdir_env_var: bool | None = field(
        name='excludeTmpdirEnvVar', default=None
    )
    writable_roots: list[str] | None = field(
        name='writableRoots', default=None
    )


class SelectedCapabilityRoot(Message, frozen=True, kw_only=True):
    """
    A user-selected root that can expose one or more runtime capabilities.
    """

    id: str
    location: CapabilityRootLocation


class ServerRequestResolvedNotification(Message, frozen=True, kw_only=True):
    request_id: Any = field(name='requestId')
    thread_id: str = field(name='threadId')


class Settings(Message, frozen=True, kw_only=True):
    """
    Settings for a collaboration mode.
    """

    developer_instructions: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None


class SpendControlLimitSnapshot(Message, frozen=True, kw_only=True):
    limit: str | None = None
    remaining_percent: int | None = field(
        name='remainingPercent', default=None
    )
    resets_at: int | None = field(name='resetsAt', default=None)
    used: str | None = None


class TerminalInteractionNotification(Message, frozen=True, kw_only=True):
    item_id: str = field(name='itemId')
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    process_id: str | None = field(name='processId', default=None)
    stdin: str | None = None


class TextElement(Message, frozen=True, kw_only=True):
    byte_range: ByteRange | None = field(name='byteRange', default=None)
    placeholder: str | None = None


class TextPosition(Message, frozen=True, kw_only=True):
    column: int | None = None
    line: int | None = None


class TextRange(Message, frozen=True, kw_only=True):
    end: TextPosition | None = None
    start: TextPosition | None = None


class ThreadArchiveParams(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')


class ThreadArchiveResponse(Message, frozen=True, kw_only=True):
    pass


class ThreadArchivedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')


class ThreadAttachmentUpdatedNotification(Message, frozen=True, kw_only=True):
    """
    Notification published after a thread attachment is created or deleted.
    """

    thread_id: str = field(name='threadId')
    attachment_id: str | None = field(name='attachmentId', default=None)
    attachment_type: str | None = field(
        name='attachmentType', default=None
    )
    identity_key: str | None = field(name='identityKey', default=None)
    operation: str | None = None


class ThreadBackgroundTerminal(Message, frozen=True, kw_only=True):
    item_id: str = field(name='itemId')
    command: str | None = None
    cpu_percent: float | None = field(name='cpuPercent', default=None)
    cwd: str | None = None
    os_pid: int | None = field(name='osPid', default=None)
    process_id: str | None = field(name='processId', default=None)
    rss_kb: int | None = field(name='rssKb', default=None)


class ThreadBackgroundTerminalsCleanParams(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')


class ThreadBackgroundTerminalsCleanResponse(Message, frozen=True, kw_only=True):
    pass


class ThreadBackgroundTerminalsListParams(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    cursor: str | None | UnsetType = UNSET
    limit: int | None | UnsetType = UNSET


class ThreadBackgroundTerminalsListResponse(Message, frozen=True, kw_only=True):
    data: list[ThreadBackgroundTerminal]
    next_cursor: str | None = field(name='nextCursor', default=None)


class ThreadBackgroundTerminalsTerminateParams(Message, frozen=True, kw_only=True):
    process_id: str = field(name='processId')
    thread_id: str = field(name='threadId')


class ThreadBackgroundTerminalsTerminateResponse(Message, frozen=True, kw_only=True):
    terminated: bool | None = None


class ThreadClosedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')


class ThreadCompactStartParams(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')


class ThreadCompactStartResponse(Message, frozen=True, kw_only=True):
    pass


class ThreadDeleteParams(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')


class ThreadDeleteResponse(Message, frozen=True, kw_only=True):
    pass


class ThreadDeletedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')


class ThreadEnvironment(Message, frozen=True, kw_only=True):
    """
    An environment selected by a loaded thread, independent of connection status.
    """

    cwd: str | None = None
    environment_id: str | None = field(name='environmentId', default=None)
    runtime_workspace_roots: list[str] | None = field(
        name='runtimeWorkspaceRoots', default=None
    )


class ThreadExtra(Message, frozen=True, kw_only=True):
    """
    Extra app-server data for a thread.
    """


class ThreadForkParams(Message, frozen=True, kw_only=True):
    """
    There are two ways to fork a thread: 1.
    """

    thread_id: str = field(name='threadId')
    approval_policy: Any | UnsetType = field(name='approvalPolicy', default=UNSET)
    approvals_reviewer: str | None | UnsetType = field(
        name='approvalsReviewer', default=UNSET
    )
    base_instructions: str | None | UnsetType = field(
        name='baseInstructions', default=UNSET
    )
    before_turn_id: str | None | UnsetType = field(name='beforeTurnId', default=UNSET)
    config: dict[str, Any] | None | UnsetType = UNSET
    cwd: str | None | UnsetType = UNSET
    defer_goal_continuation: bool | UnsetType = field(
        name='deferGoalContinuation', default=UNSET
    )
    developer_instructions: str | None | UnsetType = field(
        name='developerInstructions', default=UNSET
    )
    ephemeral: bool | UnsetType = UNSET
    exclude_turns: bool | UnsetType = field(name='excludeTurns', default=UNSET)
    experimental_prediction_mode: bool | UnsetType = field(
        name='experimentalPredictionMode', default=UNSET
    )
    last_turn_id: str | None | UnsetType = field(name='lastTurnId', default=UNSET)
    model: str | None | UnsetType = UNSET
    model_provider: str | None | UnsetType = field(name='modelProvider', default=UNSET)
    path: str | None | UnsetType = UNSET
    permissions: str | None | UnsetType = UNSET
    runtime_workspace_roots: list[str] | None | UnsetType = field(
        name='runtimeWorkspaceRoots', default=UNSET
    )
    sandbox: str | None | UnsetType = UNSET
    service_tier: str | None | UnsetType = field(name='serviceTier', default=UNSET)
    thread_source: str | None | UnsetType = field(name='threadSource', default=UNSET)


class ThreadGoal(Message, frozen=True, kw_only=True):
    status: str
    thread_id: str = field(name='threadId')
    created_at: int | None = field(name='createdAt', default=None)
    objective: str | None = None
    time_used_seconds: int | None = field(
        name='timeUsedSeconds', default=None
    )
    token_budget: int | None = field(name='tokenBudget', default=None)
    tokens_used: int | None = field(name='tokensUsed', default=None)
    updated_at: int | None = field(name='updatedAt', default=None)


class ThreadGoalClearedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')


class ThreadGoalUpdatedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    goal: ThreadGoal | None = None
    turn_id: str | None = field(name='turnId', default=None)


class ThreadItemEntry(Message, frozen=True, kw_only=True):
    item: Raw
    turn_id: str = field(name='turnId')
    completed_at_ms: int | None = field(name='completedAtMs', default=None)
    started_at_ms: int | None = field(name='startedAtMs', default=None)


class ThreadItemsListParams(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    cursor: Any | UnsetType = UNSET
    limit: int | None | UnsetType = UNSET
    sort_direction: str | None | UnsetType = field(name='sortDirection', default=UNSET)
    turn_id: str | None | UnsetType = field(name='turnId', default=UNSET)


class ThreadItemsListResponse(Message, frozen=True, kw_only=True):
    data: list[ThreadItemEntry]
    backwards_cursor: str | None = field(
        name='backwardsCursor', default=None
    )
    next_cursor: str | None = field(name='nextCursor', default=None)


class ThreadListParams(Message, frozen=True, kw_only=True):
    ancestor_thread_id: str | None | UnsetType = field(
        name='ancestorThreadId', default=UNSET
    )
    archived: bool | None | UnsetType = UNSET
    cursor: str | None | UnsetType = UNSET
    cwd: Any | UnsetType = UNSET
    excluded_thread_ids: list[str] | None | UnsetType = field(
        name='excludedThreadIds', default=UNSET
    )
    limit: int | None | UnsetType = UNSET
    model_providers: list[str] | None | UnsetType = field(
        name='modelProviders', default=UNSET
    )
    originators: list[str] | None | UnsetType = UNSET
    parent_thread_id: str | None | UnsetType = field(
        name='parentThreadId', default=UNSET
    )
    project_id: str | None | UnsetType = field(name='projectId', default=UNSET)
    search_term: str | None | UnsetType = field(name='searchTerm', default=UNSET)
    section_id: str | None | UnsetType = field(name='sectionId', default=UNSET)
    sort_direction: str | None | UnsetType = field(name='sortDirection', default=UNSET)
    sort_key: str | None | UnsetType = field(name='sortKey', default=UNSET)
    source_kinds: list[str] | None | UnsetType = field(
        name='sourceKinds', default=UNSET
    )
    use_state_db_only: bool | UnsetType = field(name='useStateDbOnly', default=UNSET)


class ThreadLoadedListParams(Message, frozen=True, kw_only=True):
    cursor: str | None | UnsetType = UNSET
    limit: int | None | UnsetType = UNSET


class ThreadLoadedListResponse(Message, frozen=True, kw_only=True):
    data: list[str]
    next_cursor: str | None = field(name='nextCursor', default=None)


class ThreadNameUpdatedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    thread_name: str | None = field(name='threadName', default=None)


class ThreadPredictionResult(Message, frozen=True, kw_only=True):
    type: str
    text: str | None = None


class ThreadPredictionUpdatedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    result: ThreadPredictionResult | None = None
    source_turn_id: str | None = field(name='sourceTurnId', default=None)


class ThreadProjectUpdatedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    project_id: str | None = field(name='projectId', default=None)


class ThreadQueueChangedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')


class ThreadReadParams(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    include_turns: bool | UnsetType = field(name='includeTurns', default=UNSET)


class ThreadResumeInitialTurnsPageParams(Message, frozen=True, kw_only=True):
    items_view: str | None | UnsetType = field(name='itemsView', default=UNSET)
    limit: int | None | UnsetType = UNSET
    sort_direction: str | None | UnsetType = field(name='sortDirection', default=UNSET)


class ThreadResumeParams(Message, frozen=True, kw_only=True):
    """
    There are three ways to resume a thread: 1.
    """

    thread_id: str = field(name='threadId')
    approval_policy: Any | UnsetType = field(name='approvalPolicy', default=UNSET)
    approvals_reviewer: str | None | UnsetType = field(
        name='approvalsReviewer', default=UNSET
    )
    base_instructions: str | None | UnsetType = field(
        name='baseInstructions', default=UNSET
    )
    config: dict[str, Any] | None | UnsetType = UNSET
    cwd: str | None | UnsetType = UNSET
    developer_instructions: str | None | UnsetType = field(
        name='developerInstructions', default=UNSET
    )
    exclude_turns: bool | UnsetType = field(name='excludeTurns', default=UNSET)
    history: list[ResponseItem] | None | UnsetType = UNSET
    initial_turns_page: ThreadResumeInitialTurnsPageParams | None | UnsetType = field(
        name='initialTurnsPage', default=UNSET
    )
    model: str | None | UnsetType = UNSET
    model_provider: str | None | UnsetType = field(name='modelProvider', default=UNSET)
    path: str | None | UnsetType = UNSET
    permissions: str | None | UnsetType = UNSET
    personality: str | None | UnsetType = UNSET
    runtime_workspace_roots: list[str] | None | UnsetType = field(
        name='runtimeWorkspaceRoots', default=UNSET
    )
    sandbox: str | None | UnsetType = UNSET
    service_tier: str | None | UnsetType = field(name='serviceTier', default=UNSET)


class ThreadRevertParams(Message, frozen=True, kw_only=True):
    """
    Replace a paginated thread's durable history with the prefix before one turn.
    """

    before_turn_id: str = field(name='beforeTurnId')
    thread_id: str = field(name='threadId')


class ThreadRevertedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')


class ThreadSectionAppearance(Message, frozen=True, kw_only=True):
    """
    Extensible visual presentation for a custom thread section.
    """

    color: str | None = None
    icon: str | None = None


class ThreadSetNameParams(Message, frozen=True, kw_only=True):
    name: str
    thread_id: str = field(name='threadId')


class ThreadSetNameResponse(Message, frozen=True, kw_only=True):
    pass


class ThreadStatus(Message, frozen=True, kw_only=True):
    type: str
    active_flags: list[str] | None = field(
        name='activeFlags', default=None
    )


class ThreadStatusChangedNotification(Message, frozen=True, kw_only=True):
    status: ThreadStatus
    thread_id: str = field(name='threadId')


class ThreadTurnsListParams(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    cursor: str | None | UnsetType = UNSET
    items_view: str | None | UnsetType = field(name='itemsView', default=UNSET)
    limit: int | None | UnsetType = UNSET
    sort_direction: str | None | UnsetType = field(name='sortDirection', default=UNSET)


class ThreadUnarchiveParams(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')


class ThreadUnarchivedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')


class ThreadUnreadPosition(Message, frozen=True, kw_only=True):
    type: str
    turn_id: str | None = field(name='turnId', default=None)


class ThreadUnsubscribeParams(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')


class ThreadUnsubscribeResponse(Message, frozen=True, kw_only=True):
    status: str


class TokenUsageBreakdown(Message, frozen=True, kw_only=True):
    cache_write_input_tokens: int | None = field(
        name='cacheWriteInputTokens', default=None
    )
    cached_input_tokens: int | None = field(
        name='cachedInputTokens', default=None
    )
    input_tokens: int | None = field(name='inputTokens', default=None)
    output_tokens: int | None = field(name='outputTokens', default=None)
    reasoning_output_tokens: int | None = field(
        name='reasoningOutputTokens', default=None
    )
    total_tokens: int | None = field(name='totalTokens', default=None)


class ToolRequestUserInputAnswer(Message, frozen=True, kw_only=True):
    """
    EXPERIMENTAL.
    """

    answers: list[str]


class ToolRequestUserInputOption(Message, frozen=True, kw_only=True):
    """
    EXPERIMENTAL.
    """

    description: str | None = None
    label: str | None = None


class ToolRequestUserInputQuestion(Message, frozen=True, kw_only=True):
    """
    EXPERIMENTAL.
    """

    id: str
    header: str | None = None
    is_other: bool | None = field(name='isOther', default=None)
    is_secret: bool | None = field(name='isSecret', default=None)
    options: list[ToolRequestUserInputOption] | None = None
    question: str | None = None


class ToolRequestUserInputResponse(Message, frozen=True, kw_only=True):
    """
    EXPERIMENTAL.
    """

    answers: dict[str, ToolRequestUserInputAnswer]


class TurnDiffUpdatedNotification(Message, frozen=True, kw_only=True):
    """
    Notification that the turn-level unified diff has changed.
    """

    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    diff: str | None = None


class TurnEnvironmentParams(Message, frozen=True, kw_only=True):
    cwd: str
    environment_id: str = field(name='environmentId')
    runtime_workspace_roots: list[str] | None | UnsetType = field(
        name='runtimeWorkspaceRoots', default=UNSET
    )


class TurnInterruptParams(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')


class TurnInterruptResponse(Message, frozen=True, kw_only=True):
    pass


class TurnModerationMetadataNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    metadata: Any = None


class TurnPlanStep(Message, frozen=True, kw_only=True):
    status: str
    step: str | None = None


class TurnPlanUpdatedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    explanation: str | None = None
    plan: list[TurnPlanStep] | None = None


class TurnSteerParams(Message, frozen=True, kw_only=True):
    expected_turn_id: str = field(name='expectedTurnId')
    input: Raw
    thread_id: str = field(name='threadId')
    additional_context: dict[str, AdditionalContextEntry] | None | UnsetType = field(
        name='additionalContext', default=UNSET
    )
    client_user_message_id: str | None | UnsetType = field(
        name='clientUserMessageId', default=UNSET
    )
    responsesapi_client_metadata: dict[str, str] | None | UnsetType = field(
        name='responsesapiClientMetadata', default=UNSET
    )


class TurnSteerResponse(Message, frozen=True, kw_only=True):
    turn_id: str = field(name='turnId')


class TurnToolOutput(Message, frozen=True, kw_only=True):
    name: str
    output: Any
    namespace: str | None | UnsetType = UNSET
    retain: bool | UnsetType = UNSET


class UserInput(Message, frozen=True, kw_only=True):
    type: str
    text: str | None = None
    text_elements: list[TextElement] | None = None
    detail: str | None = None
    url: str | None = None
    file_id: str | None = field(name='fileId', default=None)
    path: str | None = None
    name: str | None = None


class WarningNotification(Message, frozen=True, kw_only=True):
    message: str
    thread_id: str | None = field(name='threadId', default=None)


class WebSearchAction(Message, frozen=True, kw_only=True):
    type: str
    queries: list[str] | None = None
    query: str | None = None
    url: str | None = None
    pattern: str | None = None


class WorkspaceRouting(Message, frozen=True, kw_only=True):
    account_routing_override: str | None = field(
        name='accountRoutingOverride', default=None
    )
    backend_origin: str | None = field(name='backendOrigin', default=None)
    chatgpt_account_id: str | None = field(
        name='chatgptAccountId', default=None
    )


class ApplyPatchApprovalParams(Message, frozen=True, kw_only=True):
    call_id: str | None = field(name='callId', default=None)
    conversation_id: str | None = field(
        name='conversationId', default=None
    )
    file_changes: dict[str, FileChange] | None = field(
        name='fileChanges', default=None
    )
    grant_root: str | None = field(name='grantRoot', default=None)
    reason: str | None = None


class CollaborationMode(Message, frozen=True, kw_only=True):
    """
    Collaboration mode for a Codex session.
    """

    mode: str | None = None
    settings: Settings | None = None


class ConfigWarningNotification(Message, frozen=True, kw_only=True):
    details: str | None = None
    path: str | None = None
    range: TextRange | None = None
    summary: str | None = None


class ExecCommandApprovalParams(Message, frozen=True, kw_only=True):
    approval_id: str | None = field(name='approvalId', default=None)
    call_id: str | None = field(name='callId', default=None)
    command: list[str] | None = None
    conversation_id: str | None = field(
        name='conversationId', default=None
    )
    cwd: str | None = None
    parsed_cmd: list[ParsedCommand] | None = field(
        name='parsedCmd', default=None
    )
    reason: str | None = None


class FileSystemPath(Message, frozen=True, kw_only=True):
    type: str
    path: str | None = None
    pattern: str | None = None
    value: FileSystemSpecialPath | None = None


class FileSystemSandboxEntry(Message, frozen=True, kw_only=True):
    access: str | None = None
    path: FileSystemPath | None = None


class FileUpdateChange(Message, frozen=True, kw_only=True):
    diff: str | None = None
    kind: PatchChangeKind | None = None
    path: str | None = None


class GetAccountResponse(Message, frozen=True, kw_only=True):
    account: Account | None = None
    requires_openai_auth: bool | None = field(
        name='requiresOpenaiAuth', default=None
    )
    workspace_routing: WorkspaceRouting | None = field(
        name='workspaceRouting', default=None
    )


class MemoryCitation(Message, frozen=True, kw_only=True):
    entries: list[MemoryCitationEntry] | None = None
    thread_ids: list[str] | None = field(name='threadIds', default=None)


class MisalignmentErrorDetails(Message, frozen=True, kw_only=True):
    detailed_explanation: str | None = field(
        name='detailedExplanation', default=None
    )
    error_type: str | None = field(name='errorType', default=None)
    review_target: str | None = field(name='reviewTarget', default=None)
    steer: MisalignmentSteer | None = None


class Model(Message, frozen=True, kw_only=True):
    id: str
    additional_speed_tiers: list[str] | None = field(
        name='additionalSpeedTiers', default=None
    )
    availability_nux: ModelAvailabilityNux | None = field(
        name='availabilityNux', default=None
    )
    available_access_programs: ModelAccessPrograms | None = field(
        name='availableAccessPrograms', default=None
    )
    default_reasoning_effort: str | None = field(
        name='defaultReasoningEffort', default=None
    )
    default_service_tier: str | None = field(
        name='defaultServiceTier', default=None
    )
    description: str | None = None
    display_name: str | None = field(name='displayName', default=None)
    hidden: bool | None = None
    input_modalities: list[str] | None = field(
        name='inputModalities', default=None
    )
    is_default: bool | None = field(name='isDefault', default=None)
    model: str | None = None
    model_specialty: str | None = field(
        name='modelSpecialty', default=None
    )
    multi_agent_version: str | None = field(
        name='multiAgentVersion', default=None
    )
    service_tiers: list[ModelServiceTier] | None = field(
        name='serviceTiers', default=None
    )
    supported_reasoning_efforts: list[ReasoningEffortOption] | None = field(
        name='supportedReasoningEfforts', default=None
    )
    supports_personality: bool | None = field(
        name='supportsPersonality', default=None
    )
    upgrade: str | None = None
    upgrade_info: ModelUpgradeInfo | None = field(
        name='upgradeInfo', default=None
    )


class ModelListResponse(Message, frozen=True, kw_only=True):
    data: list[Model]
    next_cursor: str | None = field(name='nextCursor', default=None)


class RateLimitSnapshot(Message, frozen=True, kw_only=True):
    credits: CreditsSnapshot | None = None
    individual_limit: SpendControlLimitSnapshot | None = field(
        name='individualLimit', default=None
    )
    limit_id: str | None = field(name='limitId', default=None)
    limit_name: str | None = field(name='limitName', default=None)
    normal_model_slug: str | None = field(
        name='normalModelSlug', default=None
    )
    plan_type: str | None = field(name='planType', default=None)
    primary: RateLimitWindow | None = None
    rate_limit_reached_type: str | None = field(
        name='rateLimitReachedType', default=None
    )
    secondary: RateLimitWindow | None = None
    spend_control_reached: bool | None = field(
        name='spendControlReached', default=None
    )


class ReviewStartParams(Message, frozen=True, kw_only=True):
    target: ReviewTarget
    thread_id: str = field(name='threadId')
    delivery: str | None | UnsetType = UNSET


class ThreadItem(Message, frozen=True, kw_only=True):
    type: str
    id: str
    client_id: str | None = field(name='clientId', default=None)
    content: Any = None
    fragments: list[HookPromptFragment] | None = None
    delivery: str | None = None
    memory_citation: MemoryCitation | None = field(
        name='memoryCitation', default=None
    )
    phase: str | None = None
    questions: list[AsyncUserInputQuestion] | None = None
    text: str | None = None
    name: str | None = None
    namespace: str | None = None
    output: Any = None
    summary: list[str] | None = None
    aggregated_output: str | None = field(
        name='aggregatedOutput', default=None
    )
    command: str | None = None
    command_actions: list[CommandAction] | None = field(
        name='commandActions', default=None
    )
    cwd: str | None = None
    duration_ms: int | None = field(name='durationMs', default=None)
    exit_code: int | None = field(name='exitCode', default=None)
    plugin_id: str | None = field(name='pluginId', default=None)
    process_id: str | None = field(name='processId', default=None)
    script_path: str | None = field(name='scriptPath', default=None)
    source: str | None = None
    status: str | None = None
    changes: list[FileUpdateChange] | None = None
    app_context: McpToolCallAppContext | None = field(
        name='appContext', default=None
    )
    arguments: Any = None
    error: McpToolCallError | None = None
    mcp_app_resource_uri: str | None = field(
        name='mcpAppResourceUri', default=None
    )
    mcp_app_ui: McpAppUi | None = field(name='mcpAppUi', default=None)
    read_only_hint: bool | None = field(name='readOnlyHint', default=None)
    result: Any = None
    server: str | None = None
    tool: str | None = None
    content_items: list[DynamicToolCallOutputContentItem] | None = field(
        name='contentItems', default=None
    )
    success: bool | None = None
    agents_states: dict[str, CollabAgentState] | None = field(
        name='agentsStates', default=None
    )
    model: str | None = None
    prompt: str | None = None
    reasoning_effort: str | None = field(
        name='reasoningEffort', default=None
    )
    receiver_thread_ids: list[str] | None = field(
        name='receiverThreadIds', default=None
    )
    sender_thread_id: str | None = field(
        name='senderThreadId', default=None
    )
    agent_path: str | None = field(name='agentPath', default=None)
    agent_thread_id: str | None = field(name='agentThreadId', default=None)
    kind: str | None = None
    action: WebSearchAction | None = None
    query: str | None = None
    results: list[Any] | None = None
    path: str | None = None
    failure: ImageGenerationFailure | None = None
    revised_prompt: str | None = field(name='revisedPrompt', default=None)
    saved_path: str | None = field(name='savedPath', default=None)
    transparent_background: bool | None = field(
        name='transparentBackground', default=None
    )
    review: str | None = None


class ThreadReadState(Message, frozen=True, kw_only=True):
    """
    The first unread position in a durable local thread.
    """

    first_unread: ThreadUnreadPosition | None = field(
        name='firstUnread', default=None
    )
    revision: str | None = None


class ThreadReadStateChangedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    read_state: ThreadReadState | None = field(
        name='readState', default=None
    )


class ThreadSection(Message, frozen=True, kw_only=True):
    """
    An independently persisted, user-visible thread section.
    """

    id: str
    appearance: ThreadSectionAppearance | None = None
    name: str | None = None


class ThreadSettings(Message, frozen=True, kw_only=True):
    active_permission_profile: ActivePermissionProfile | None = field(
        name='activePermissionProfile', default=None
    )
    approval_policy: Any = field(name='approvalPolicy', default=None)
    approvals_reviewer: str | None = field(
        name='approvalsReviewer', default=None
    )
    collaboration_mode: CollaborationMode | None = field(
        name='collaborationMode', default=None
    )
    cwd: str | None = None
    disabled_plugin_ids: list[str] | None = field(
        name='disabledPluginIds', default=None
    )
    effort: str | None = None
    model: str | None = None
    model_provider: str | None = field(name='modelProvider', default=None)
    multi_agent_mode: Any = field(name='multiAgentMode', default=None)
    personality: str | None = None
    sandbox_policy: SandboxPolicy | None = field(
        name='sandboxPolicy', default=None
    )
    service_tier: str | None = field(name='serviceTier', default=None)
    summary: str | None = None


class ThreadSettingsUpdatedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    thread_settings: ThreadSettings | None = field(
        name='threadSettings', default=None
    )


class ThreadStartParams(Message, frozen=True, kw_only=True):
    allow_provider_model_fallback: bool | UnsetType = field(
        name='allowProviderModelFallback', default=UNSET
    )
    approval_policy: Any | UnsetType = field(name='approvalPolicy', default=UNSET)
    approvals_reviewer: str | None | UnsetType = field(
        name='approvalsReviewer', default=UNSET
    )
    base_instructions: str | None | UnsetType = field(
        name='baseInstructions', default=UNSET
    )
    config: dict[str, Any] | None | UnsetType = UNSET
    cwd: str | None | UnsetType = UNSET
    daybreak_enabled: bool | None | UnsetType = field(
        name='daybreakEnabled', default=UNSET
    )
    developer_instructions: str | None | UnsetType = field(
        name='developerInstructions', default=UNSET
    )
    dynamic_tools: list[DynamicToolSpec] | None | UnsetType = field(
        name='dynamicTools', default=UNSET
    )
    environments: list[TurnEnvironmentParams] | None | UnsetType = UNSET
    ephemeral: bool | None | UnsetType = UNSET
    experimental_raw_events: bool | UnsetType = field(
        name='experimentalRawEvents', default=UNSET
    )
    history_mode: str | None | UnsetType = field(name='historyMode', default=UNSET)
    mock_experimental_field: str | None | UnsetType = field(
        name='mockExperimentalField', default=UNSET
    )
    model: str | None | UnsetType = UNSET
    model_provider: str | None | UnsetType = field(name='modelProvider', default=UNSET)
    multi_agent_mode: Any | UnsetType = field(name='multiAgentMode', default=UNSET)
    permissions: str | None | UnsetType = UNSET
    personality: str | None | UnsetType = UNSET
    project_id: str | None | UnsetType = field(name='projectId', default=UNSET)
    runtime_workspace_roots: list[str] | None | UnsetType = field(
        name='runtimeWorkspaceRoots', default=UNSET
    )
    sandbox: str | None | UnsetType = UNSET
    selected_capability_roots: list[SelectedCapabilityRoot] | None | UnsetType = field(
        name='selectedCapabilityRoots', default=UNSET
    )
    service_name: str | None | UnsetType = field(name='serviceName', default=UNSET)
    service_tier: str | None | UnsetType = field(name='serviceTier', default=UNSET)
    session_start_source: str | None | UnsetType = field(
        name='sessionStartSource', default=UNSET
    )
    thread_source: str | None | UnsetType = field(name='threadSource', default=UNSET)


class ThreadTokenUsage(Message, frozen=True, kw_only=True):
    last: TokenUsageBreakdown
    total: TokenUsageBreakdown
    model_context_window: int | None = field(
        name='modelContextWindow', default=None
    )


class ThreadTokenUsageUpdatedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    token_usage: ThreadTokenUsage = field(name='tokenUsage')
    turn_id: str = field(name='turnId')


class ToolRequestUserInputParams(Message, frozen=True, kw_only=True):
    """
    EXPERIMENTAL.
    """

    item_id: str = field(name='itemId')
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    auto_resolution_ms: int | None = field(
        name='autoResolutionMs', default=None
    )
    is_blocking: bool | None = field(name='isBlocking', default=None)
    questions: list[ToolRequestUserInputQuestion] | None = None


class TurnError(Message, frozen=True, kw_only=True):
    message: str
    additional_details: str | None = field(
        name='additionalDetails', default=None
    )
    codex_error_info: Any = field(name='codexErrorInfo', default=None)
    misalignment: MisalignmentErrorDetails | None = None


class TurnStartParams(Message, frozen=True, kw_only=True):
    input: Raw
    thread_id: str = field(name='threadId')
    additional_context: dict[str, AdditionalContextEntry] | None | UnsetType = field(
        name='additionalContext', default=UNSET
    )
    approval_policy: Any | UnsetType = field(name='approvalPolicy', default=UNSET)
    approvals_reviewer: str | None | UnsetType = field(
        name='approvalsReviewer', default=UNSET
    )
    client_user_message_id: str | None | UnsetType = field(
        name='clientUserMessageId', default=UNSET
    )
    collaboration_mode: CollaborationMode | None | UnsetType = field(
        name='collaborationMode', default=UNSET
    )
    cwd: str | None | UnsetType = UNSET
    cyber_access_program: str | None | UnsetType = field(
        name='cyberAccessProgram', default=UNSET
    )
    disabled_plugin_ids: list[str] | None | UnsetType = field(
        name='disabledPluginIds', default=UNSET
    )
    effort: str | None | UnsetType = UNSET
    environments: list[TurnEnvironmentParams] | None | UnsetType = UNSET
    model: str | None | UnsetType = UNSET
    multi_agent_mode: Any | UnsetType = field(name='multiAgentMode', default=UNSET)
    output_schema: Any | UnsetType = field(name='outputSchema', default=UNSET)
    parent_turn_id: str | None | UnsetType = field(name='parentTurnId', default=UNSET)
    permissions: str | None | UnsetType = UNSET
    personality: str | None | UnsetType = UNSET
    responsesapi_client_metadata: dict[str, str] | None | UnsetType = field(
        name='responsesapiClientMetadata', default=UNSET
    )
    root_turn_id: str | None | UnsetType = field(name='rootTurnId', default=UNSET)
    runtime_workspace_roots: list[str] | None | UnsetType = field(
        name='runtimeWorkspaceRoots', default=UNSET
    )
    sandbox_policy: SandboxPolicy | None | UnsetType = field(
        name='sandboxPolicy', default=UNSET
    )
    service_tier: str | None | UnsetType = field(name='serviceTier', default=UNSET)
    service_tier_for_turn: str | None | UnsetType = field(
        name='serviceTierForTurn', default=UNSET
    )
    summary: str | None | UnsetType = UNSET
    tool_output: TurnToolOutput | None | UnsetType = field(
        name='toolOutput', default=UNSET
    )
    turn_trigger: str | None | UnsetType = field(name='turnTrigger', default=UNSET)


class AccountRateLimitsUpdatedNotification(Message, frozen=True, kw_only=True):
    """
    Sparse rolling rate-limit update.
    """

    rate_limits: RateLimitSnapshot | None = field(
        name='rateLimits', default=None
    )


class AdditionalFileSystemPermissions(Message, frozen=True, kw_only=True):
    entries: list[FileSystemSandboxEntry] | None = None
    glob_scan_max_depth: int | None = field(
        name='globScanMaxDepth', default=None
    )
    read: list[str] | None = None
    write: list[str] | None = None


class AdditionalPermissionProfile(Message, frozen=True, kw_only=True):
    file_system: AdditionalFileSystemPermissions | None = field(
        name='fileSystem', default=None
    )
    network: AdditionalNetworkPermissions | None = None


class CommandExecutionRequestApprovalParams(Message, frozen=True, kw_only=True):
    item_id: str = field(name='itemId')
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    additional_permissions: AdditionalPermissionProfile | None = field(
        name='additionalPermissions', default=None
    )
    approval_id: str | None = field(name='approvalId', default=None)
    available_decisions: list[Any] | None = field(
        name='availableDecisions', default=None
    )
    command: str | None = None
    command_actions: list[CommandAction] | None = field(
        name='commandActions', default=None
    )
    cwd: str | None = None
    environment_id: str | None = field(name='environmentId', default=None)
    kind: str | None = None
    network_approval_context: NetworkApprovalContext | None = field(
        name='networkApprovalContext', default=None
    )
    proposed_execpolicy_amendment: list[str] | None = field(
        name='proposedExecpolicyAmendment', default=None
    )
    proposed_network_policy_amendments: list[NetworkPolicyAmendment] | None = field(
        name='proposedNetworkPolicyAmendments', default=None
    )
    reason: str | None = None
    started_at_ms: int | None = field(name='startedAtMs', default=None)


class ErrorNotification(Message, frozen=True, kw_only=True):
    error: TurnError
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    will_retry: bool | None = field(name='willRetry', default=None)


class FileChangePatchUpdatedNotification(Message, frozen=True, kw_only=True):
    item_id: str = field(name='itemId')
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    changes: list[FileUpdateChange] | None = None


class GetAccountRateLimitsResponse(Message, frozen=True, kw_only=True):
    account_id: str | None = field(name='accountId', default=None)
    ordinary_usage_allowed: bool | None = field(
        name='ordinaryUsageAllowed', default=None
    )
    rate_limit_reset_credits: RateLimitResetCreditsSummary | None = field(
        name='rateLimitResetCredits', default=None
    )
    rate_limit_upsell: Any = field(name='rateLimitUpsell', default=None)
    rate_limits: RateLimitSnapshot | None = field(
        name='rateLimits', default=None
    )
    rate_limits_by_limit_id: dict[str, RateLimitSnapshot] | None = field(
        name='rateLimitsByLimitId', default=None
    )


class GrantedPermissionProfile(Message, frozen=True, kw_only=True):
    file_system: AdditionalFileSystemPermissions | None | UnsetType = field(
        name='fileSystem', default=UNSET
    )
    network: AdditionalNetworkPermissions | None | UnsetType = UNSET


class PermissionsRequestApprovalResponse(Message, frozen=True, kw_only=True):
    permissions: GrantedPermissionProfile
    scope: str | UnsetType = UNSET
    strict_auto_review: bool | None | UnsetType = field(
        name='strictAutoReview', default=UNSET
    )


class RequestPermissionProfile(Message, frozen=True, kw_only=True):
    file_system: AdditionalFileSystemPermissions | None = field(
        name='fileSystem', default=None
    )
    network: AdditionalNetworkPermissions | None = None


class Turn(Message, frozen=True, kw_only=True):
    id: str
    status: str
    completed_at: int | None = field(name='completedAt', default=None)
    duration_ms: int | None = field(name='durationMs', default=None)
    error: TurnError | None = None
    items: list[Raw] | None = None
    items_view: str | None = field(name='itemsView', default=None)
    root_turn_id: str | None = field(name='rootTurnId', default=None)
    started_at: int | None = field(name='startedAt', default=None)


class TurnCompletedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    turn: Turn


class TurnStartResponse(Message, frozen=True, kw_only=True):
    turn: Turn


class TurnStartedNotification(Message, frozen=True, kw_only=True):
    thread_id: str = field(name='threadId')
    turn: Turn


class TurnsPage(Message, frozen=True, kw_only=True):
    data: list[Turn]
    backwards_cursor: str | None = field(
        name='backwardsCursor', default=None
    )
    next_cursor: str | None = field(name='nextCursor', default=None)


class GuardianApprovalReviewAction(Message, frozen=True, kw_only=True):
    type: str
    command: str | None = None
    cwd: str | None = None
    source: str | None = None
    argv: list[str] | None = None
    program: str | None = None
    approval_id: str | None = field(name='approvalId', default=None)
    process_id: str | None = field(name='processId', default=None)
    stdin: str | None = None
    files: list[str] | None = None
    host: str | None = None
    port: int | None = None
    protocol: str | None = None
    target: str | None = None
    connector_id: str | None = field(name='connectorId', default=None)
    connector_name: str | None = field(name='connectorName', default=None)
    server: str | None = None
    tool_name: str | None = field(name='toolName', default=None)
    tool_title: str | None = field(name='toolTitle', default=None)
    permissions: RequestPermissionProfile | None = None
    reason: str | None = None


class ItemGuardianApprovalReviewCompletedNotification(Message, frozen=True, kw_only=True):
    """
    [UNSTABLE] Temporary notification payload for approval auto-review.
    """

    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    action: GuardianApprovalReviewAction | None = None
    completed_at_ms: int | None = field(name='completedAtMs', default=None)
    decision_source: str | None = field(
        name='decisionSource', default=None
    )
    review: GuardianApprovalReview | None = None
    review_id: str | None = field(name='reviewId', default=None)
    started_at_ms: int | None = field(name='startedAtMs', default=None)
    target_item_id: str | None = field(name='targetItemId', default=None)


class ItemGuardianApprovalReviewStartedNotification(Message, frozen=True, kw_only=True):
    """
    [UNSTABLE] Temporary notification payload for approval auto-review.
    """

    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    action: GuardianApprovalReviewAction | None = None
    review: GuardianApprovalReview | None = None
    review_id: str | None = field(name='reviewId', default=None)
    started_at_ms: int | None = field(name='startedAtMs', default=None)
    target_item_id: str | None = field(name='targetItemId', default=None)


class PermissionsRequestApprovalParams(Message, frozen=True, kw_only=True):
    item_id: str = field(name='itemId')
    thread_id: str = field(name='threadId')
    turn_id: str = field(name='turnId')
    cwd: str | None = None
    environment_id: str | None = field(name='environmentId', default=None)
    permissions: RequestPermissionProfile | None = None
    reason: str | None = None
    started_at_ms: int | None = field(name='startedAtMs', default=None)


class ReviewStartResponse(Message, frozen=True, kw_only=True):
    turn: Turn
    review_thread_id: str | None = field(
        name='reviewThreadId', default=None
    )


class Thread(Message, frozen=True, kw_only=True):
    id: str
    status: ThreadStatus
    agent_nickname: str | None = field(name='agentNickname', default=None)
    agent_role: str | None = field(name='agentRole', default=None)
    can_accept_direct_input: bool | None = field(
        name='canAcceptDirectInput', default=None
    )
    cli_version: str | None = field(name='cliVersion', default=None)
    created_at: int | None = field(name='createdAt', default=None)
    cwd: str | None = None
    daybreak_enabled: bool | None = field(
        name='daybreakEnabled', default=None
    )
    environments: list[ThreadEnvironment] | None = None
    ephemeral: bool | None = None
    extra: ThreadExtra | None = None
    forked_from_id: str | None = field(name='forkedFromId', default=None)
    git_info: GitInfo | None = field(name='gitInfo', default=None)
    history_mode: str | None = field(name='historyMode', default=None)
    model: str | None = None
    model_provider: str | None = field(name='modelProvider', default=None)
    name: str | None = None
    originator: str | None = None
    parent_thread_id: str | None = field(
        name='parentThreadId', default=None
    )
    path: str | None = None
    preview: str | None = None
    project_id: str | None = field(name='projectId', default=None)
    reasoning_effort: str | None = field(
        name='reasoningEffort', default=None
    )
    recency_at: int | None = field(name='recencyAt', default=None)
    section: ThreadSection | None = None
    section_entered_at: int | None = field(
        name='sectionEnteredAt', default=None
    )
    session_id: str | None = field(name='sessionId', default=None)
    source: Any = None
    thread_source: str | None = field(name='threadSource', default=None)
    turns: list[Turn] | None = None
    updated_at: int | None = field(name='updatedAt', default=None)


class ThreadForkResponse(Message, frozen=True, kw_only=True):
    thread: Thread
    active_permission_profile: ActivePermissionProfile | None = field(
        name='activePermissionProfile', default=None
    )
    approval_policy: Any = field(name='approvalPolicy', default=None)
    approvals_reviewer: str | None = field(
        name='approvalsReviewer', default=None
    )
    cwd: str | None = None
    disabled_plugin_ids: list[str] | None = field(
        name='disabledPluginIds', default=None
    )
    instruction_sources: list[str] | None = field(
        name='instructionSources', default=None
    )
    model: str | None = None
    model_provider: str | None = field(name='modelProvider', default=None)
    multi_agent_mode: Any = field(name='multiAgentMode', default=None)
    reasoning_effort: str | None = field(
        name='reasoningEffort', default=None
    )
    runtime_workspace_roots: list[str] | None = field(
        name='runtimeWorkspaceRoots', default=None
    )
    sandbox: SandboxPolicy | None = None
    service_tier: str | None = field(name='serviceTier', default=None)


class ThreadListResponse(Message, frozen=True, kw_only=True):
    data: list[Thread]
    backwards_cursor: str | None = field(
        name='backwardsCursor', default=None
    )
    next_cursor: str | None = field(name='nextCursor', default=None)
    read_states: dict[str, ThreadReadState] | None = field(
        name='readStates', default=None
    )


class ThreadReadResponse(Message, frozen=True, kw_only=True):
    thread: Thread
    read_state: ThreadReadState | None = field(
        name='readState', default=None
    )


class ThreadResumeResponse(Message, frozen=True, kw_only=True):
    thread: Thread
    active_permission_profile: ActivePermissionProfile | None = field(
        name='activePermissionProfile', default=None
    )
    approval_policy: Any = field(name='approvalPolicy', default=None)
    approvals_reviewer: str | None = field(
        name='approvalsReviewer', default=None
    )
    collaboration_mode: CollaborationMode | None = field(
        name='collaborationMode', default=None
    )
    cwd: str | None = None
    disabled_plugin_ids: list[str] | None = field(
        name='disabledPluginIds', default=None
    )
    initial_turns_page: TurnsPage | None = field(
        name='initialTurnsPage', default=None
    )
    instruction_sources: list[str] | None = field(
        name='instructionSources', default=None
    )
    items_backwards_cursor: str | None = field(
        name='itemsBackwardsCursor', default=None
    )
    model: str | None = None
    model_provider: str | None = field(name='modelProvider', default=None)
    multi_agent_mode: Any = field(name='multiAgentMode', default=None)
    reasoning_effort: str | None = field(
        name='reasoningEffort', default=None
    )
    runtime_workspace_roots: list[str] | None = field(
        name='runtimeWorkspaceRoots', default=None
    )
    sandbox: SandboxPolicy | None = None
    service_tier: str | None = field(name='serviceTier', default=None)
    turns_backwards_cursor: str | None = field(
        name='turnsBackwardsCursor', default=None
    )


class ThreadRevertResponse(Message, frozen=True, kw_only=True):
    thread: Thread
    items_backwards_cursor: str | None = field(
        name='itemsBackwardsCursor', default=None
    )
    turns_backwards_cursor: str | None = field(
        name='turnsBackwardsCursor', default=None
    )


class ThreadStartResponse(Message, frozen=True, kw_only=True):
    thread: Thread
    active_permission_profile: ActivePermissionProfile | None = field(
        name='activePermissionProfile', default=None
    )
    approval_policy: Any = field(name='approvalPolicy', default=None)
    approvals_reviewer: str | None = field(
        name='approvalsReviewer', default=None
    )
    cwd: str | None = None
    disabled_plugin_ids: list[str] | None = field(
        name='disabledPluginIds', default=None
    )
    instruction_sources: list[str] | None = field(
        name='instructionSources', default=None
    )
    model: str | None = None
    model_provider: str | None = field(name='modelProvider', default=None)
    multi_agent_mode: Any = field(name='multiAgentMode', default=None)
    reasoning_effort: str | None = field(
        name='reasoningEffort', default=None
    )
    runtime_workspace_roots: list[str] | None = field(
        name='runtimeWorkspaceRoots', default=None
    )
    sandbox: SandboxPolicy | None = None
    service_tier: str | None = field(name='serviceTier', default=None)


class ThreadStartedNotification(Message, frozen=True, kw_only=True):
    thread: Thread


class ThreadTurnsListResponse(Message, frozen=True, kw_only=True):
    data: list[Turn]
    backwards_cursor: str | None = field(
        name='backwardsCursor', default=None
    )
    next_cursor: str | None = field(name='nextCursor', default=None)


class ThreadUnarchiveResponse(Message, frozen=True, kw_only=True):
    thread: Thread
