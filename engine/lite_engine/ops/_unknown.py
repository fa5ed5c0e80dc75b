"""What to do about an operator that nobody has defined."""

from lite_messages import tr

#: For one with a domain of somebody's own.
DEFINE_IT = tr(
    "define it with lite_engine.custom_op before the model is opened, or name the file that does: "
    "--operators FILE.py"
)
